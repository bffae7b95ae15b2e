// SPDX-License-Identifier: Apache-2.0
// From the progress of a call or job to the listener of the host.
package io.shardwright;

import io.shardwright.internal.Structs;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.function.Consumer;

/** Receives progress on any thread, one call at a time. */
final class ProgressBridge {
    private final Consumer<Progress> listener;

    private ProgressBridge(Consumer<Progress> listener) {
        this.listener = listener;
    }

    /** Native reference that goes when the uses are closed; 0 without a listener. */
    static long reference(Consumer<Progress> listener, Uses uses) {
        if (listener == null) {
            return 0;
        }
        long reference = shw_nativeJNI.reference(new ProgressBridge(listener));
        uses.atClose(() -> shw_nativeJNI.releaseReference(reference));
        return reference;
    }

    /** Called by the native part. What a listener throws is reported and ends there: nobody waits for it. */
    void tell(Structs.Progress progress) {
        try {
            listener.accept(new Progress(progress));
        } catch (Throwable e) {
            System.getLogger("io.shardwright").log(System.Logger.Level.WARNING, "a progress listener failed", e);
        }
    }
}
