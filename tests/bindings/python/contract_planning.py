# SPDX-License-Identifier: Apache-2.0
"""The steps of the contract that plan by descriptions: layouts, shards of grids, entries, merges, global plans."""
from array import array

import shardwright
from shardwright import global_plan, planning
from shardwright._options import KIND_NAMES, KINDS
from shardwright.layout import GridShard


def dtype_names():
    names = ("bool", "int8", "int64", "uint8", "bfloat16", "float16", "float32", "float64")
    return {shardwright.dtype_number(name): name for name in names}


class Entries:
    """The `entries` of a step as columns; boxes that are not listed are the whole tensor, or those of its layout."""

    def __init__(self, step):
        self.entries = step["entries"]
        self.texts = {key: (bytearray(), array("Q", [0])) for key in ("name", "path", "attributes")}
        self.dtypes, self.kinds, self.sizes = array("i"), array("i"), array("Q")
        self.shapes, self.shape_cuts, self.ranges = array("q"), array("Q", [0]), array("Q", [0])
        self.offsets, self.extents, self.digests = array("q"), array("q"), b""
        for entry in self.entries:
            self.add(entry)
        self.order = step.get("order")
        self.secondary = step.get("secondary")

    def add(self, entry):
        for key, (blob, cuts) in self.texts.items():
            blob += entry.get(key, "").encode()
            cuts.append(len(blob))
        shape = entry.get("shape", [])
        self.dtypes.append(shardwright.dtype_number(entry["dtype"]) if "dtype" in entry else 0)
        self.kinds.append(KINDS[entry.get("kind", "auto")])
        self.sizes.append(entry.get("size", 0))
        self.shapes.extend(shape)
        self.shape_cuts.append(len(self.shapes))
        whole = [] if "layout" in entry else [[[0] * len(shape), shape]]
        boxes = entry.get("boxes", whole)
        for offsets, extents in boxes:
            self.offsets.extend(offsets)
            self.extents.extend(extents)
        self.ranges.append(self.ranges[-1] + len(boxes))
        self.digests += planning.content_digest(entry["content"].encode()) if "content" in entry else bytes(16)

    def batch(self):
        names, paths, attributes = (self.texts[key] for key in ("name", "path", "attributes"))
        marks = None if self.secondary is None else bytes(i in self.secondary for i in range(self.ranges[-1]))
        given = planning.EntryBatch(
            len(self.entries), names[0], names[1], self.dtypes, kinds=self.kinds, shapes=self.shapes,
            shape_offsets=self.shape_cuts, box_ranges=self.ranges, box_offsets=self.offsets, box_sizes=self.extents,
            order=None if self.order is None else array("Q", self.order), secondary=marks, object_sizes=self.sizes,
            paths=paths[0], path_offsets=paths[1], digests=self.digests)
        if attributes[0]:
            given.attributes, given.attribute_offsets = attributes
        return given


def box_lines(plan):
    """One text per box of a plan: name, dtype, kind, offsets, sizes, number."""
    found, names = planning.entries(plan), dtype_names()
    lines, at = [], 0
    for i, name in enumerate(found.name_list()):
        ndim = found.shape_offsets[i + 1] - found.shape_offsets[i]
        for box in range(found.box_ranges[i], found.box_ranges[i + 1]):
            dtype = names[found.dtypes[i]] if found.dtypes[i] else "object"
            values = [",".join(map(str, column[at:at + ndim])) for column in (found.box_offsets, found.box_sizes)]
            words = [name, dtype, KIND_NAMES[found.kinds[i]], *(v for v in values if v), f"#{found.numbers[box]}"]
            lines.append(" ".join(words))
            at += ndim
    return lines


def kept_names(plan, numbers):
    """name#number of each box that the rank of the plan keeps; `numbers`: what a merge says of its boxes."""
    found = planning.entries(plan)
    same(len(numbers), found.box_ranges[-1])
    return [f"{name}#{numbers[box]}" for i, name in enumerate(found.name_list())
            for box in range(found.box_ranges[i], found.box_ranges[i + 1]) if numbers[box] != planning.NOT_KEPT]


def items(plan):
    return shardwright.Plan.from_bytes(plan).to_dict()["items"]


def lists(pieces):
    return [[list(offsets), list(sizes), start] for offsets, sizes, start in pieces]


def same(found, wanted):
    assert found == wanted, f"found {found}, expected {wanted}"


class PlanningSteps:
    """A mixin: `things` holds what the steps made, by id."""

    def do_layout(self, step):
        words = {key: step[key] for key in ("ranks", "tensor_map") if key in step}
        self.things[step["id"]] = shardwright.Layout(step["mesh"], step.get("placements"), **words)

    def do_pieces(self, step):
        layout = self.things[step["layout"]]
        same([lists(layout.pieces(step["shape"], rank)) for rank in range(len(step["expected"]))], step["expected"])
        shapes = [list(layout.local_shape(step["shape"], rank)) for rank in range(len(step["local_shapes"]))]
        same(shapes, step["local_shapes"])

    def do_grid(self, step):
        places = [tuple(place) for place in step["places"]]
        shard = GridShard.at(step["local_shape"], *places, prepended=step.get("prepended", 0),
                                         flat_range=tuple(step["flat_range"]) if "flat_range" in step else None)
        same([list(shard.global_shape), list(shard.offsets)], [step["global_shape"], step["offsets"]])
        same(lists(shard.pieces()), step["expected"])

    def do_describe(self, step):
        self.things[step["id"]] = planning.describe(
            Entries(step).batch(), kind=step.get("kind", "local_save"), rank=step.get("rank", 0),
            world_size=step.get("world_size", 0), kinds=[tuple(pair) for pair in step.get("kinds", ())],
            agreement=step.get("agreement", ""))

    def do_merge(self, step):
        plans = [self.things[plan] for plan in step["plans"]]
        merged = planning.merge(plans, **step.get("options", {}))
        if "digest" in step:
            same(planning.digest(merged.plan).hex(), step["digest"])
        if "kept" in step:
            same([kept_names(*each) for each in zip(plans, merged.kept, strict=True)], step["kept"])
        if "id" in step:
            self.things[step["id"]] = merged.plan

    def do_entries(self, step):
        same(box_lines(self.things[step["plan"]]), step["expected"])

    def do_same_entries(self, step):
        first, second = (box_lines(self.things[plan]) for plan in step["plans"])
        same(first, second)

    def do_same_items(self, step):
        first, second = (items(self.things[plan]) for plan in step["plans"])
        assert first, "a plan without items"
        same(first, second)

    def do_plan_digest(self, step):
        same(planning.digest(self.things[step["plan"]]).hex(), step["expected"])

    def do_match(self, step):
        options = dict(step.get("options", {}))
        found = planning.match(self.things[step["stored"]], Entries(step).batch(), **options)
        for column in ("wanted", "chunks", "wanted_offsets", "stored_offsets", "sizes", "entry_begins"):
            same([column, list(getattr(found, column))], [column, step[column]])

    def do_plan_owners(self, step):
        marks = bytes(step["secondary"]) if "secondary" in step else None
        found = planning.owners(array("Q", step["weights"]), array("I", step["sets"]), array("Q", step["set_offsets"]),
                                array("i", step["holders"]), step["rank_count"], secondary=marks)
        same(list(found), step["expected"])

    def do_content_digest(self, step):
        same(planning.content_digest(step["text"].encode()).hex(), step["expected"])

    def do_rank_description(self, step):
        layouts = [self.things[entry["layout"]] if "layout" in entry else None for entry in step["entries"]]
        described = global_plan.describe(Entries(step).batch(), layouts, rank=step["rank"], world_size=step["world_size"],
                                      kinds=[tuple(pair) for pair in step.get("kinds", ())],
                                      agreement=step.get("agreement", ""))
        if "digest" in step:
            same(described.digest.hex(), step["digest"])
        self.things[step["id"]] = described

    def do_described_global_plan(self, step):
        described = [self.things[each] for each in step["descriptions"]]
        digests = [each.digest for each in described]
        chosen = global_plan.representatives(digests)
        same(chosen, step["representatives"])
        plan = global_plan.GlobalPlan(digests, [described[rank].description for rank in chosen],
                                     [each.part for each in described], **step.get("options", {}))
        self.things[step["id"]] = plan
        if "digest" in step:
            same(plan.digest.hex(), step["digest"])
            same(list(plan.rank_bytes), step["rank_bytes"])
        for name, owners in step.get("owners", {}).items():
            same([name, list(plan.owners(name))], [name, owners])
        totals = step.get("totals", {})
        same({key: plan.totals[key] for key in totals}, totals)

    def do_write_list(self, step):
        self.things[step["id"]] = self.things[step["plan"]].write_list(step["rank"], step["generation"])

    def do_expand(self, step):
        expanded = self.things[step["plan"]].expand(step["generation"])
        self.things |= dict(zip(step["ids"], [expanded.plan, *expanded.write_lists], strict=True))
