"""Trains a small language model with any number of processes, which may change at every moment.

hyperpodrun starts it in each pod, once for each accelerator, and starts it again with more or fewer processes when the
job is rescaled; torchrun does as well. Nothing of it depends on how many there are: a step takes the same samples
whoever shares them, and a checkpoint is loaded by as many processes as there are then.
"""

import argparse
import json
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, Sampler

log = logging.getLogger("train")

VOCABULARY, TOKENS, WIDTH, LAYERS, HEADS = 64, 16, 64, 2, 4
SIGNAL_SECONDS = 60
"""Longest time between the signals that end the ranks of one job."""


class Sequences(Dataset[tuple[int, Tensor]]):
    """Synthetic text: each token follows from the one before. An item is its own number and its tokens."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        token = index % VOCABULARY
        tokens = [token := (5 * token + 3 + (index // VOCABULARY) % 2) % VOCABULARY for _ in range(TOKENS + 1)]
        return index, torch.tensor(tokens)


class ElasticSampler(Sampler[list[int]]):
    """This rank's part of each batch, from where training stands.

    The order of an epoch follows from its number alone, and a batch is the next `batch` samples of it for all ranks
    together. So one number says which samples were seen, and any number of ranks can share out the others.
    """

    def __init__(self, length: int, batch: int, rank: int, ranks: int) -> None:
        self.length, self.batch, self.rank, self.ranks = length, batch, rank, ranks
        self.seen = 0
        """Samples that all ranks have trained on, in all epochs. The loader is ahead of it: the loop counts."""

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order(self.seen)
        while True:
            batch = [next(order) for _ in range(self.batch)]
            yield batch[self.rank :: self.ranks]

    def _order(self, position: int) -> Iterator[int]:
        """All samples from a position on, epoch after epoch."""
        while True:
            epoch, first = divmod(position, self.length)
            shuffled = torch.randperm(self.length, generator=torch.Generator().manual_seed(epoch))
            yield from shuffled[first:].tolist()
            position = (epoch + 1) * self.length

    def state_dict(self) -> dict[str, int]:
        """What a checkpoint holds of it."""
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from there."""
        self.seen = state["seen"]


class LanguageModel(nn.Module):
    """A small transformer that predicts the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(LAYERS)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """The logits of each next token."""
        mask = nn.Transformer.generate_square_subsequent_mask(TOKENS, device=tokens.device)
        hidden = self.tokens(tokens) + self.positions(torch.arange(TOKENS, device=tokens.device))
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        return self.head(hidden)


class Training:
    """Model, optimizer and sampler: all that a checkpoint holds. DCP calls state_dict and load_state_dict."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, sampler: ElasticSampler) -> None:
        self.model, self.optimizer, self.sampler = model, optimizer, sampler

    def state_dict(self) -> dict[str, Any]:
        """This rank's shards, each with its place in the whole."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "sampler": self.sampler.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what was loaded, sharded for the ranks that there are now."""
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.sampler.load_state_dict(state["sampler"])


class Checkpoints:
    """Checkpoints in a folder that all pods see, the newest two of them."""

    def __init__(self, folder: Path, training: Training) -> None:
        self.folder, self.training = folder, training

    def load_newest(self) -> None:
        """Continue from the newest checkpoint, where there is one."""
        if whole := self._whole():
            dcp.load({"training": self.training}, checkpoint_id=whole[-1])

    def save(self) -> None:
        """Write one; every rank calls it."""
        dcp.save({"training": self.training}, checkpoint_id=self.folder / f"{self.training.sampler.seen:012}")
        if dist.get_rank() == 0:
            for old in self._whole()[:-2]:
                shutil.rmtree(old)

    def _whole(self) -> list[Path]:
        """Those that were written to the end, in order: DCP writes `.metadata` last."""
        return sorted(path.parent for path in self.folder.glob("*/.metadata") if re.fullmatch(r"\d+", path.parent.name))


class Stop:
    """Whether this process is to end.

    hyperpodrun sends SIGUSR1 before a rescaling, and waits for as long as the job's graceful shutdown may take. SIGTERM
    comes when Kubernetes removes the pod, and from torchrun.
    """

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.requested = True

    def wait(self) -> None:
        """Wait for this process's own signal: launchers take a rank that ends by itself for one that is done.

        Raises:
            TimeoutError: No signal came, because only other pods were removed. The launcher restarts all ranks.
        """
        end = time.monotonic() + SIGNAL_SECONDS
        while not self.requested:
            if time.monotonic() > end:
                raise TimeoutError(f"other ranks were stopped, and this one got no signal in {SIGNAL_SECONDS} s")
            time.sleep(0.1)


def leave_group(_: int) -> None:
    """For processes that load data: launchers signal whole groups, and would end them before their rank has saved."""
    os.setpgrp()


class Record:
    """A line of JSON for each step of this rank: its end, the loss of the batch, and the samples that it took of it.

    The names of the files that ranks write together begin with the time at which rank 0 started.
    """

    def __init__(self, folder: Path | None) -> None:
        self.file = None
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            start = [time.time_ns()]
            dist.broadcast_object_list(start)
            self.file = (folder / f"{start[0]}-{dist.get_rank()}.jsonl").open("w", buffering=1)

    def __call__(self, sampler: ElasticSampler, loss: float, samples: Tensor) -> None:
        """Write the step that has just been taken."""
        if self.file:
            line = {"time": time.time(), "seen": sampler.seen, "rank": sampler.rank, "ranks": sampler.ranks}
            print(json.dumps(line | {"loss": loss, "samples": samples.tolist()}), file=self.file)


def train(
    args: argparse.Namespace, training: Training, checkpoints: Checkpoints, stop: Stop, device: torch.device
) -> None:
    """Take steps until no batch of the epochs is left, or until any rank is to stop."""
    model, optimizer, sampler = training.model, training.optimizer, training.sampler
    record = Record(args.record)
    data = DataLoader(
        Sequences(args.samples), batch_sampler=sampler, num_workers=args.loaders, worker_init_fn=leave_group
    )
    batches = iter(data)
    # A batch that the last samples do not fill is left out.
    last, stopping = args.epochs * args.samples - args.batch, False
    while sampler.seen <= last and not stopping:
        end = time.monotonic() + args.step_seconds
        samples, tokens = next(batches)
        tokens = tokens.to(device)
        logits = model(tokens[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum") / (args.batch * TOKENS)
        # FSDP takes the mean of all ranks' gradients. Their sum is that of the whole batch, however it is shared out.
        (loss * sampler.ranks).backward()
        optimizer.step()
        optimizer.zero_grad()
        sampler.seen += args.batch
        time.sleep(max(0.0, end - time.monotonic()))
        # One reduction for both: every rank knows the loss of the batch, and all stop after the same step.
        total = torch.stack([loss.detach(), torch.tensor(float(stop.requested), device=device)])
        dist.all_reduce(total)
        step, stopping = sampler.seen // args.batch, total[1].item() > 0
        record(sampler, total[0].item(), samples)
        if sampler.rank == 0 and step % args.log_every == 0:
            log.info("step %d: loss %.4f", step, total[0].item())
        if stopping or sampler.seen > last or step % args.checkpoint_every == 0:
            checkpoints.save()
    if stopping and sampler.seen <= last:
        stop.wait()


def main() -> None:
    """Train, from the newest checkpoint on, until all epochs are done or a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("CHECKPOINT_DIR")
    parser.add_argument("--checkpoints", type=Path, default=folder, required=folder is None, metavar="DIR")
    parser.add_argument("--samples", type=int, default=2000, help="samples of an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16, help="samples of a step, of all ranks together")
    parser.add_argument(
        "--step-seconds", type=float, default=0, metavar="SECONDS", help="shortest step, to imitate a larger model"
    )
    parser.add_argument("--checkpoint-every", type=int, default=50, metavar="STEPS")
    parser.add_argument("--log-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--loaders", type=int, default=0, help="processes that load data, for each rank")
    parser.add_argument("--record", type=Path, metavar="DIR", help="write there which samples each rank saw")
    args = parser.parse_args()
    # The log rules of a job read standard output.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    stop = Stop()

    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if args.batch < ranks:
        parser.error(f"a batch of {args.batch} leaves some of {ranks} ranks without a sample")

    torch.manual_seed(0)
    model = LanguageModel().to(device)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    sampler = ElasticSampler(args.samples, args.batch, rank, ranks)
    training = Training(model, optimizer, sampler)
    checkpoints = Checkpoints(args.checkpoints, training)
    checkpoints.load_newest()
    log.info("[rank%d] %d processes continue after %d samples", rank, ranks, sampler.seen)
    train(args, training, checkpoints, stop, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
