// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run directory.
package io.shardwright;

import io.shardwright.internal.Facts;
import io.shardwright.internal.Words;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The checkpoints of a run directory, ordered by their number.
 *
 * @param steps all of them
 * @param newestWhole the newest one that is whole; null when none is
 * @param tracker what Megatron's {@code latest_checkpointed_iteration.txt} says; empty without one
 * @param tracked the one of these that it names; null when it names none
 */
public record Steps(List<Step> steps, Step newestWhole, String tracker, Step tracked) {
    /**
     * One checkpoint of a run.
     *
     * @param name of its folder, e.g. {@code step-00000100}
     * @param number e.g. 100
     * @param completeness whether it can be loaded, as far as its structure says
     * @param message why it is not whole; empty when it is
     */
    public record Step(String name, long number, Completeness completeness, String message) {}

    /** How much of a checkpoint there is. */
    public enum Completeness {
        /** All of it. */
        WHOLE,
        /** A save that has not committed, or was stopped before. */
        UNCOMMITTED,
        /** Something that was committed is missing or damaged. */
        DAMAGED
    }

    static Steps of(String json) {
        Facts facts = Facts.of(json);
        List<Step> steps = facts.objects("steps").stream().map(Steps::step).collect(Collectors.toUnmodifiableList());
        return new Steps(steps, named(steps, facts.text("newest_whole")), facts.text("tracker"),
                named(steps, facts.text("tracked")));
    }

    private static Step named(List<Step> steps, String name) {
        return steps.stream().filter(step -> step.name().equals(name)).findFirst().orElse(null);
    }

    private static Step step(Facts step) {
        return new Step(step.text("name"), step.number("step"),
                Words.named("state", step.text("state"), Completeness.values()), step.text("message"));
    }
}
