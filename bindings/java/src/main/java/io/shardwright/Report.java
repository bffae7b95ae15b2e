// SPDX-License-Identifier: Apache-2.0
// Reports of calls.
package io.shardwright;

import io.shardwright.internal.Handle;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What a save, load, verification or clean-up did. Immutable, thread-safe; closing it is not necessary. */
public final class Report extends Handle {
    private final Structs.ReportSummary figures;

    Report(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_report_release);
        figures = shw_nativeJNI.shw_report_summarize(handle);
    }

    /**
     * The whole report.
     *
     * @return JSON text with {@code "schema": 1}
     */
    public String json() {
        return Text.of(with(shw_nativeJNI::shw_report_json));
    }

    /**
     * Whether the result survives a loss of power.
     *
     * @return false when it was saved without durability
     */
    public boolean isDurable() {
        return (figures.flags & shw_nativeConstants.SHW_REPORT_NOT_DURABLE) == 0;
    }

    /**
     * Whether stored blocks have digests.
     *
     * @return false when digests were switched off
     */
    public boolean hasDigests() {
        return (figures.flags & shw_nativeConstants.SHW_REPORT_WITHOUT_DIGESTS) == 0;
    }

    /**
     * Whether digests were checked.
     *
     * @return false when verification was switched off
     */
    public boolean isVerified() {
        return (figures.flags & shw_nativeConstants.SHW_REPORT_UNVERIFIED) == 0;
    }

    /**
     * Tensors.
     *
     * @return their number
     */
    public long tensorCount() {
        return figures.tensorCount;
    }

    /**
     * Byte objects.
     *
     * @return their number
     */
    public long objectCount() {
        return figures.objectCount;
    }

    /**
     * Chunks of this rank.
     *
     * @return their number
     */
    public long chunkCount() {
        return figures.chunkCount;
    }

    /**
     * Data files of the whole checkpoint; of a removal, those that hold nothing else.
     *
     * @return their number
     */
    public long fileCount() {
        return figures.fileCount;
    }

    /**
     * Payload that this rank wrote, or what it read from the files.
     *
     * @return bytes
     */
    public long bytes() {
        return figures.bytes;
    }

    /**
     * Payload of the whole checkpoint.
     *
     * @return bytes
     */
    public long bytesTotal() {
        return figures.bytesTotal;
    }

    /**
     * What was read beyond the boxes that were wanted.
     *
     * @return bytes
     */
    public long bytesOverRead() {
        return figures.bytesOverRead;
    }

    /**
     * Most staging memory in use at one time.
     *
     * @return bytes
     */
    public long bytesStagedPeak() {
        return figures.bytesStagedPeak;
    }

    /**
     * Time of the call.
     *
     * @return the span
     */
    public Duration elapsed() {
        return Duration.ofNanos(figures.elapsedNs);
    }

    /**
     * What came to this rank from others through the collective.
     *
     * @return bytes
     */
    public long bytesReceived() {
        return figures.bytesReceived;
    }

    /**
     * How much of {@link #bytes} is known to have come from the page cache.
     *
     * @return bytes
     */
    public long bytesCached() {
        return figures.bytesCached;
    }

    private List<String> names(int list) {
        return with(h -> {
            List<String> names = new ArrayList<>();
            long count = shw_nativeJNI.shw_report_name_count(h, list);
            for (long i = 0; i < count; i++) {
                names.add(Text.of(shw_nativeJNI.shw_report_name(h, list, i)));
            }
            return names;
        });
    }

    /**
     * Entries that were filled.
     *
     * @return names
     */
    public List<String> loaded() {
        return names(shw_nativeConstants.SHW_REPORT_LOADED);
    }

    /**
     * Wanted but not stored.
     *
     * @return names
     */
    public List<String> missing() {
        return names(shw_nativeConstants.SHW_REPORT_MISSING);
    }

    /**
     * Stored but not wanted.
     *
     * @return names
     */
    public List<String> unexpected() {
        return names(shw_nativeConstants.SHW_REPORT_UNEXPECTED);
    }

    /**
     * Entries that were converted.
     *
     * @return texts such as "name: stored dtype -> wanted dtype"
     */
    public List<String> casts() {
        return names(shw_nativeConstants.SHW_REPORT_CAST);
    }

    /**
     * Entries that were cropped or padded.
     *
     * @return texts such as "name: [stored shape] -> [wanted shape]"
     */
    public List<String> shapes() {
        return names(shw_nativeConstants.SHW_REPORT_SHAPE);
    }

    /**
     * Damage found by a verification.
     *
     * @return one sentence each
     */
    public List<String> findings() {
        return names(shw_nativeConstants.SHW_REPORT_FINDING);
    }

    /**
     * Generations that a clean-up removed, or entries that a removal did, or would in a dry run.
     *
     * @return their ids, or names
     */
    public List<String> removed() {
        return names(shw_nativeConstants.SHW_REPORT_REMOVED);
    }

    @Override
    public String toString() {
        try {
            return json();
        } catch (IllegalStateException closed) {
            return super.toString();
        }
    }
}
