// SPDX-License-Identifier: Apache-2.0
// The flat arrays of parameters of one call.
package io.shardwright.hsdp;

import io.shardwright.internal.LongList;
import io.shardwright.internal.TensorAccess;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import java.util.ArrayList;
import java.util.List;

/** Parameters of units, those of one behind those of another, as native/hsdp_params.h has them. Not thread-safe. */
final class ParamColumns {
    private final List<byte[]> names = new ArrayList<>();
    private final List<byte[]> aliases = new ArrayList<>();
    private final LongList nameOffsets = new LongList();
    private final LongList aliasOffsets = new LongList();
    private final LongList aliasRanges = new LongList();
    private final LongList facts = new LongList();
    private final LongList shapes = new LongList();

    /** Adds those of the next unit; `uses` keeps memory of library tensors. */
    void addUnit(List<HsdpParam> params, Uses uses) {
        long nameEnd = 0;
        long aliasEnd = 0;
        long aliasCount = 0;
        nameOffsets.add(0);
        aliasOffsets.add(0);
        aliasRanges.add(0);
        for (HsdpParam param : params) {
            byte[] name = Text.bytes(param.name());
            names.add(name);
            nameEnd += name.length;
            nameOffsets.add(nameEnd);
            for (String each : param.aliases()) {
                byte[] alias = Text.bytes(each);
                aliases.add(alias);
                aliasEnd += alias.length;
                aliasOffsets.add(aliasEnd);
            }
            aliasCount += param.aliases().size();
            aliasRanges.add(aliasCount);
            addFacts(param, uses);
        }
    }

    private void addFacts(HsdpParam param, Uses uses) {
        TensorAccess.Dense dense = param.tensor() == null
                ? new TensorAccess.Dense(0, 0, param.dtype(), param.shape(), shw_nativeConstants.SHW_DEVICE_CPU, 0)
                : TensorAccess.read(param.name(), param.tensor(), uses);
        int flags = (param.isFrozen() ? shw_nativeConstants.SHW_HSDP_PARAM_FROZEN : 0)
                | (param.isReplicated() ? shw_nativeConstants.SHW_HSDP_PARAM_REPLICATE : 0)
                | (param.isIgnored() ? shw_nativeConstants.SHW_HSDP_PARAM_IGNORE : 0);
        facts.addAll(new long[] {dense.address(), dense.byteSize(), dense.dtype().number(), dense.shape().length,
            dense.deviceType(), dense.deviceId(), param.shardDim(), flags});
        shapes.addAll(dense.shape());
    }

    byte[] names() {
        return new Text.Blob(names).bytes;
    }

    long[] nameOffsets() {
        return nameOffsets.toArray();
    }

    long[] facts() {
        return facts.toArray();
    }

    long[] shapes() {
        return shapes.toArray();
    }

    byte[] aliases() {
        return new Text.Blob(aliases).bytes;
    }

    long[] aliasOffsets() {
        return aliasOffsets.toArray();
    }

    long[] aliasRanges() {
        return aliasRanges.toArray();
    }
}
