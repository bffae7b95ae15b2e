// SPDX-License-Identifier: Apache-2.0
// Memory of the host that a unit reads.
package io.shardwright.hsdp;

import io.shardwright.HostTensor;
import io.shardwright.internal.Uses;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Keeps memory of the host, and library tensors in it open, until the unit has let go of it. Thread-safe. */
final class Lent {
    private final List<HostTensor> tensors = new ArrayList<>();
    private final List<Uses> uses = new ArrayList<>();
    private final Map<Integer, ByteBuffer> places = new HashMap<>();

    /** Tensors that are read until {@link #forget}. */
    synchronized void add(List<HostTensor> more, Uses during) {
        tensors.addAll(more);
        uses.add(during);
    }

    /** Buffers of whole parameters from `first` on, until there are others or the context ends. */
    synchronized void place(int first, List<ByteBuffer> buffers) {
        for (int i = 0; i < buffers.size(); i++) {
            places.put(first + i, buffers.get(i));
        }
    }

    synchronized void forget() {
        tensors.clear();
        uses.forEach(Uses::close);
        uses.clear();
    }
}
