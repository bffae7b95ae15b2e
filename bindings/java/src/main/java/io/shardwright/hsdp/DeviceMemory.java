// SPDX-License-Identifier: Apache-2.0
// Memory that is known by its address.
package io.shardwright.hsdp;

/**
 * Memory by its address, such as that of a tensor which a framework has on a device: {@link Device#memory} says that it lies on a
 * device, {@link HsdpView#memory} gives that of a unit. The address is taken for what it is said to be. Borrowed: what uses it says
 * for how long, and until then the program neither frees the memory nor writes it.
 *
 * @param address where it begins, for what reaches the device
 * @param deviceType DLPack's number of the kind of device; 1 = the host
 * @param deviceId which device of that kind, from 0
 */
public record DeviceMemory(long address, int deviceType, int deviceId) {}
