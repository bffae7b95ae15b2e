// SPDX-License-Identifier: Apache-2.0
// A storage of the host that blocks, for tests of what happens meanwhile.
package io.shardwright;

import java.util.concurrent.CountDownLatch;

/** Reads and writes wait for a gate while it is armed. */
class GatedStorage extends MapStorage {
    final CountDownLatch entered = new CountDownLatch(1);
    final CountDownLatch gate = new CountDownLatch(1);
    volatile boolean armed = true;

    @Override
    void beforeRead() {
        pass();
    }

    @Override
    void beforeWrite() {
        pass();
    }

    private void pass() {
        if (!armed) {
            return;
        }
        entered.countDown();
        while (gate.getCount() > 0) { // as a storage in native code: it neither sees nor takes interrupts
            Thread.yield();
        }
    }
}
