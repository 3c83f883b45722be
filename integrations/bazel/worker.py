#!/usr/bin/env python3
"""A worker of BuildGrid's: takes actions by the Remote Workers API, and runs each in an empty folder without an environment.

For tests: BuildGrid's own worker is a program in C++ that no package registry has. Usage: worker.py PORT NAME FOLDER
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as re
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2_grpc as re_grpc
from buildgrid._protos.google.bytestream import bytestream_pb2, bytestream_pb2_grpc
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2, bots_pb2_grpc

# States of leases and of bots, in bots.proto.
PENDING, ACTIVE, COMPLETED = 1, 2, 4
OK = 1


class Store:
    """The content-addressed storage, with what came from it kept on disk."""

    def __init__(self, channel: grpc.Channel, folder: pathlib.Path) -> None:
        self.stream = bytestream_pb2_grpc.ByteStreamStub(channel)
        self.batch = re_grpc.ContentAddressableStorageStub(channel)
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, digest: re.Digest) -> pathlib.Path:
        """A file with these bytes."""
        path = self.folder / digest.hash
        if not path.exists():
            name = f"blobs/{digest.hash}/{digest.size_bytes}"
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                for response in self.stream.Read(bytestream_pb2.ReadRequest(resource_name=name)):
                    file.write(response.data)
            os.rename(file.name, path)
        return path

    def message(self, digest: re.Digest, kind: type) -> object:
        return kind.FromString(self.path(digest).read_bytes())

    def put(self, data: bytes) -> re.Digest:
        digest = re.Digest(hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        request = re.BatchUpdateBlobsRequest()
        request.requests.add(digest=digest, data=data)
        for response in self.batch.BatchUpdateBlobs(request).responses:
            if response.status.code:
                raise OSError(response.status.message)
        return digest


def lay_out(store: Store, digest: re.Digest, folder: pathlib.Path) -> None:
    """The files of an action: those that are named, and no others."""
    directory = store.message(digest, re.Directory)
    folder.mkdir(parents=True, exist_ok=True)
    for file in directory.files:
        # One file a piece: a link to the store would let an action change it.
        shutil.copyfile(store.path(file.digest), folder / file.name)
        os.chmod(folder / file.name, 0o755 if file.is_executable else 0o644)
    for child in directory.directories:
        lay_out(store, child.digest, folder / child.name)
    for link in directory.symlinks:
        os.symlink(link.target, folder / link.name)


def execute(store: Store, action: re.Action) -> re.ActionResult:
    command = store.message(action.command_digest, re.Command)
    environment = {pair.name: pair.value for pair in command.environment_variables}
    outputs = list(command.output_paths) or [*command.output_files, *command.output_directories]
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        root = pathlib.Path(name, "root")
        lay_out(store, action.input_root_digest, root)
        folder = root / command.working_directory
        for output in outputs:
            (folder / output).parent.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(
            list(command.arguments), cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        result = re.ActionResult(exit_code=run.returncode, stdout_raw=run.stdout, stderr_raw=run.stderr)
        for output in outputs:
            path = folder / output
            if path.is_file():
                result.output_files.add(
                    path=output, digest=store.put(path.read_bytes()), is_executable=os.access(path, os.X_OK)
                )
    return result


def main(port: str, name: str, folder: str) -> None:
    limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", limits)
    store, bots = Store(channel, pathlib.Path(folder)), bots_pb2_grpc.BotsStub(channel)
    session = bots_pb2.BotSession(bot_id=name, status=OK)
    session.worker.devices.add(handle=name)
    session = bots.CreateBotSession(bots_pb2.CreateBotSessionRequest(parent="", bot_session=session))
    while True:
        for lease in session.leases:
            if lease.state != PENDING:
                continue
            action = re.Action()
            if not lease.payload.Unpack(action):
                digest = re.Digest()
                lease.payload.Unpack(digest)
                action = store.message(digest, re.Action)
            result = execute(store, action)
            lease.result.Pack(result)
            lease.state = COMPLETED
            print(f"{name}: {result.exit_code}", flush=True)
        request = bots_pb2.UpdateBotSessionRequest(name=session.name, bot_session=session)
        session = bots.UpdateBotSession(request, timeout=20)


if __name__ == "__main__":
    main(*sys.argv[1:])
