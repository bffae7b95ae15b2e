# SPDX-License-Identifier: Apache-2.0
"""The demo: a model that really trains, saved, killed, resumed on another mesh, and read from four languages.

    python demo.py --build BUILD [--steps 16] [--more-steps 6]

Stages print what they do and check it; the first that fails ends the demo with exit code 1. BUILD/demo/ keeps the
checkpoint, the logs and the table (table.txt) for a look afterwards.
"""
import argparse
import json
import os
import shutil
import sys
import time

import readers
import table
from launch import Job

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """A stage did not hold; the text says which and what to look at."""


def require(condition, text):
    if not condition:
        raise Failed(text)


class Demo:
    def __init__(self, build, steps, more_steps):
        """`steps` are trained before the save, `more_steps` by the uninterrupted run and again by the resumed one."""
        self.build = os.path.abspath(build)
        self.steps, self.more_steps = steps, more_steps
        self.home = os.path.join(self.build, "demo")
        self.checkpoint = os.path.join(self.home, "checkpoint")
        self.digests = os.path.join(self.home, "digests.json")
        self.rows, self.facts = [], {}

    def say(self, text):
        print(text, flush=True)

    def record(self, what, result, seconds=None, size=None, floor=None):
        self.rows.append(table.Row(what, result, seconds, size, floor))

    def job(self, ranks, mode, name, steps=0, more_steps=0):
        arguments = [mode, "--checkpoint", self.checkpoint, "--digests", self.digests, "--steps", str(steps),
                     "--more-steps", str(more_steps), "--fallback", os.path.join(HERE, "..", "..", "LICENSE")]
        return Job(ranks, arguments, os.path.join(self.home, "logs", name), os.path.join(self.build, "python"))

    # Stage 1: 4 processes, mesh 2 x 2. Trains, saves, trains on; then a save over the same path dies half-way.
    def train_and_kill(self):
        self.say("1. training on a 2 x 2 mesh (4 processes), saving, training on")
        job, losses, killed = self.job(4, "first", "first", self.steps, self.more_steps), [], None
        for event in job.events():
            kind = event.pop("event")
            if kind == "step":
                losses.append(event)
                self.say(f"   step {event['step']:>3}  loss {event['loss']:.4f}  {event['seconds']:.1f} s")
            elif kind == "overwrite_begins":
                killed = self.kill_half_way(job)
                break
            else:
                self.facts[kind] = event
        codes = job.wait()
        require(killed is not None, f"the job ended before its second save, exit codes {codes}\n{job.tail()}")
        require(all(c == -9 for c in codes), f"the second save was over before the kill, exit codes {codes}")
        self.losses = {e["step"]: e["loss"] for e in losses}
        first, last = losses[0]["loss"], losses[self.steps - 1]["loss"]
        require(last < first, f"the loss did not fall: {first:.4f} to {last:.4f}")
        self.record_training(first, last, losses, killed)

    def record_training(self, first, last, losses, killed):
        model, saved = self.facts["model"], self.facts["saved"]
        uneven = f"{model['uneven']} sharded unevenly, {len(model['left_out'])} outside FSDP"
        self.record("train, mesh 2 x 2", f"{model['parameters'] / 1e6:.1f} M parameters, {uneven}; loss {first:.3f} -> "
                    f"{last:.3f}", sum(e["seconds"] for e in losses[:self.steps]))
        self.record("save, 4 ranks", f"durable, digests on, step {saved['step']}", saved["seconds"], saved["bytes"], "dwrite")
        self.record("overwrite, killed", f"all ranks killed at {killed / saved['bytes']:.0%} of the bytes")

    def kill_half_way(self, job):
        """SIGKILL to all ranks once half of the checkpoint's bytes were written; returns how many were. The ranks run a
        millisecond at a time meanwhile: a save of this size takes a fraction of a second, and must not end unseen."""
        base, half = job.bytes_written(), self.facts["saved"]["bytes"] // 2
        job.stop()
        job.go_on()
        written, deadline = 0, time.monotonic() + 60
        while written < half and time.monotonic() < deadline:
            job.run_for(0.001)
            written = max(now - then for now, then in zip(job.bytes_written(), base, strict=True))
        job.kill()
        return written

    # Stage 2: the earlier checkpoint still opens, whole.
    def old_one_opens(self):
        self.say("2. the checkpoint after the kill")
        start = time.monotonic()
        verify = readers.cli(self.build, "verify", "--deep", self.checkpoint)
        require(verify.returncode == 0, f"verify --deep says:\n{verify.stdout}{verify.stderr}")
        self.record("verify --deep", "the earlier checkpoint is whole", time.monotonic() - start,
                    self.facts["saved"]["bytes"], "dread")
        with open(self.digests, encoding="utf-8") as f:
            self.expected = json.load(f)
        info = json.loads(readers.cli(self.build, "info", "--json", self.checkpoint).stdout)
        require(info["metadata"]["step"] == str(self.steps), f"the checkpoint is of step {info['metadata']}")

    # Stage 3: 3 processes on another mesh: bitwise equal, and training goes on.
    def resume(self):
        self.say("3. resuming on 3 processes")
        job, resumed = self.job(3, "resume", "resume", more_steps=self.more_steps), []
        for event in job.events():
            kind = event.pop("event")
            if kind == "step":
                resumed.append(event)
                beside = self.losses[event["step"]]
                self.say(f"   step {event['step']:>3}  loss {event['loss']:.4f}  uninterrupted run {beside:.4f}")
            else:
                self.facts[kind] = event
        codes = job.wait()
        require(codes == [0, 0, 0], f"exit codes {codes}\n{job.tail()}")
        loaded, proved = self.facts["loaded"], self.facts["proved"]
        gap = max(abs(e["loss"] - self.losses[e["step"]]) for e in resumed)
        require(len(resumed) == self.more_steps and gap < 0.02, f"the resumed loss is {gap:.4f} off")
        self.record("load, 3 ranks", f"{proved['tensors']} tensors bitwise equal, none missing or unexpected",
                    loaded["seconds"], self.facts["saved"]["bytes"], "dread")
        self.record("train on, mesh 3", f"{self.more_steps} steps, loss at most {gap:.1e} from the uninterrupted run",
                    sum(e["seconds"] for e in resumed))

    # Stage 4: C, Java, Rust and the command line read the same checkpoint.
    def read_everywhere(self):
        self.say("4. reading it from C, Java, Rust and the command line")
        memory = self.facts["memory"]
        for language, command in readers.programs(self.build).items():
            start = time.monotonic()
            found, slice_hex = readers.run_reader(command, self.checkpoint, memory["slice_name"])
            require(found == self.expected, f"{language} printed other digests than the tensors in memory have")
            require(slice_hex == memory["slice_hex"], f"{language} read another slice: {slice_hex}")
            self.record(f"read from {language}", f"{len(found)} SHA-256 digests and a slice equal", time.monotonic() - start)
        digest = readers.cli(self.build, "digest", "--algorithm", "sha256", "--json", self.checkpoint)
        require(json.loads(digest.stdout) == self.expected, "the command line printed other digests")
        self.record("command line digest", f"{len(self.expected)} digests equal")
        self.show_plan()
        for command in (["info"], ["ls"], ["show", "--slice", "[2:4, 0:4]"]):
            name = [memory["slice_name"]] if command[0] == "show" else []
            shown = readers.cli(self.build, command[0], self.checkpoint, *name, *command[1:])
            require(shown.returncode == 0, f"{command[0]}: {shown.stderr}")
            self.say("\n".join("   " + line for line in shown.stdout.splitlines()[:8]))

    def show_plan(self):
        """A page about loading the checkpoint on three ranks, as stage 3 did."""
        ranks, page = os.path.join(self.home, "three_ranks.json"), os.path.join(self.home, "plan.html")
        with open(ranks, "w", encoding="utf-8") as f:
            json.dump({"schema": 1, "meshes": {"main": {"axes": {"shard": 3}}},
                       "rules": [{"match": "*.weight", "placements": {"shard": "Shard(0)"}}, {"match": "*"}]}, f)
        plan = readers.cli(self.build, "plan", "load", self.checkpoint, "--to", ranks, "--html", page)
        require(plan.returncode == 0 and os.path.getsize(page) > 10_000, f"plan load says:\n{plan.stdout}{plan.stderr}")
        self.record("plan a load, 3 ranks", f"open {os.path.relpath(page)} in a browser")

    # Stage 5: one flipped byte is found and named.
    def flip_a_byte(self):
        self.say("5. one byte of a copy is flipped")
        damaged = os.path.join(self.home, "damaged")
        shutil.copytree(self.checkpoint, damaged)
        where = readers.flip_byte(self.build, damaged, "model.head.weight")
        verify = readers.cli(self.build, "verify", "--deep", damaged)
        text = verify.stdout + verify.stderr
        require(verify.returncode == 1, f"verify --deep ended with {verify.returncode}:\n{text}")
        require("model.head.weight" in text and where in text, f"verify --deep does not name tensor and file:\n{text}")
        named = next(line.strip() for line in text.splitlines() if "model.head.weight" in line)
        self.say(f"   {named}")
        self.record("flipped byte", "verify --deep names tensor, file and range")

    def run(self):
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.home)
        start = time.monotonic()
        for stage in (self.train_and_kill, self.old_one_opens, self.resume, self.read_everywhere, self.flip_a_byte):
            stage()
        text = table.render(self.rows, table.floors(self.build, self.home, self.facts["saved"]["bytes"]))
        self.say(text + f"\nall of it in {time.monotonic() - start:.0f} s; look around in {self.home}")
        with open(os.path.join(self.home, "table.txt"), "w", encoding="utf-8") as f:
            f.write(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--steps", type=int, default=16, help="before the save")
    parser.add_argument("--more-steps", type=int, default=6, help="after it")
    options = parser.parse_args()
    try:
        Demo(options.build, options.steps, options.more_steps).run()
    except Failed as e:
        print(f"demo failed: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
