// SPDX-License-Identifier: Apache-2.0
// Devices: where units have their memory.
package io.shardwright.hsdp;

import io.shardwright.Context;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;

/** Memory of a kind, and lanes on which work runs in order beside the caller. Contexts that use it keep it alive. Thread-safe. */
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
     * A device of a plugin, such as {@code open(context, "cuda", "{\"device\": 0}")}.
     *
     * @param context into which it was loaded ({@link Context#loadPlugin})
     * @param plugin its name
     * @param config text that the plugin understands; null = none
     * @return the device
     * @throws NotFoundException when no such plugin was loaded
     * @throws ShardwrightException UNIMPLEMENTED for a plugin without devices; UNAVAILABLE naming what is missing for one
     */
    public static Device open(Context context, String plugin, String config) {
        try (Uses uses = new Uses()) {
            byte[] text = config == null ? null : Text.bytes(config);
            return new Device(shw_nativeJNI.shw_context_open_device(uses.of(context), Text.terminated(plugin), text));
        }
    }

    /** Whether the host reaches memory of that kind of device. */
    static boolean isHost(int deviceType) {
        return deviceType == shw_nativeConstants.SHW_DEVICE_CPU || deviceType == shw_nativeConstants.SHW_DEVICE_CUDA_HOST
                || deviceType == shw_nativeConstants.SHW_DEVICE_ROCM_HOST;
    }

    /**
     * Its kind, which views of its memory say.
     *
     * @return DLPack's number; 1 = the host
     */
    public int deviceType() {
        return with(shw_nativeJNI::shw_device_type);
    }

    /**
     * Which device of that kind.
     *
     * @return its number, from 0
     */
    public int deviceId() {
        return with(shw_nativeJNI::shw_device_id);
    }

    /**
     * Whether its memory is memory of the host.
     *
     * @return true where buffers reach it
     */
    public boolean isHost() {
        return isHost(deviceType());
    }

    /**
     * Memory that lies on this device.
     *
     * @param address where it begins there
     * @return the memory, of which nothing is checked here
     */
    public DeviceMemory memory(long address) {
        return new DeviceMemory(address, deviceType(), deviceId());
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
