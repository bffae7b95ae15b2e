// SPDX-License-Identifier: Apache-2.0
// The ranks that make one call together.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.charset.StandardCharsets;

/**
 * Tells the other ranks when this one fails on its way to the library, so that they fail at once instead of waiting for it.
 * The library does so itself once it has the call. One call of one thread.
 */
final class Team {
    private final Collective collective;
    private final Context context;
    private final int call;
    private boolean met;

    private Team(Collective collective, Context context, int call) {
        this.collective = collective;
        this.context = context;
        this.call = call;
    }

    /** For a call that waits. */
    static Team of(Collective collective, int call) {
        return new Team(collective, null, call);
    }

    /** For a job of the context. */
    static Team ofJob(Collective collective, int call, Context context) {
        return new Team(collective, context, call);
    }

    /** From here on the library tells the others. */
    void meets() {
        met = true;
    }

    /** Tells them of the failure, when nobody else does. */
    void decline(Throwable failure) {
        if (met || collective == null) {
            return;
        }
        int code = failure instanceof ShardwrightException
                ? ((ShardwrightException) failure).status()
                : codeOf(failure).number();
        byte[] message = String.valueOf(failure).getBytes(StandardCharsets.UTF_8);
        try (Uses uses = new Uses()) {
            long handle = uses.of(collective);
            if (context == null) {
                shw_nativeJNI.shw_collective_decline(handle, call, code, message);
            } else {
                long job = shw_nativeJNI.shw_collective_decline_async(uses.of(context), handle, call, code, message);
                shw_nativeJNI.shw_job_release(job);
            }
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
        }
    }

    private static StatusCode codeOf(Throwable failure) {
        if (failure instanceof OutOfMemoryError) {
            return StatusCode.RESOURCE_EXHAUSTED;
        }
        if (failure instanceof IllegalArgumentException || failure instanceof NullPointerException
                || failure instanceof IllegalStateException) {
            return StatusCode.INVALID_ARGUMENT;
        }
        return StatusCode.HOST_EXCEPTION;
    }
}
