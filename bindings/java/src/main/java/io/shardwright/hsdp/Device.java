// SPDX-License-Identifier: Apache-2.0
// Devices that work is put on.
package io.shardwright.hsdp;

import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;

/** A device with lanes, on which work runs in order beside the caller. Contexts that use it keep it alive. Thread-safe. */
public final class Device extends Handle {
    private Device(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_device_release);
    }

    /**
     * The host, whose lanes are threads.
     *
     * @param inlineLanes true: what is put on a lane runs where it is put, which makes an order of events that repeats
     * @return the device
     */
    public static Device host(boolean inlineLanes) {
        NativeLoader.load();
        return new Device(shw_nativeJNI.shw_device_create_host((short) (inlineLanes ? 1 : 0)));
    }

    /**
     * Name of the device.
     *
     * @return e.g. {@code host}
     */
    public String name() {
        return Text.of(with(shw_nativeJNI::shw_device_name));
    }

    @Override
    protected String facts() {
        return name();
    }
}
