"""What the command line does besides compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpulower
from conftest import BROKEN, SAXPY, kernel, run

PROGRAM = """
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%p: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %c = arith.constant 1.0 : f32
      memref.store %c, %p[%i] : memref<?xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %p = gpu.alloc (%c32) : memref<?xf32>
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%p : memref<?xf32>)
    return
  }
}
"""


def test_inspecting() -> None:
    fat = gpulower.compile(SAXPY, ["sm_80", "sm_90"], emit="fatbin")
    inspection = gpulower.inspect(fat, device=["sm_90", "8.6"])
    machine = [image for image in inspection.images if image.kind == "cubin"]
    assert [image.target for image in machine] == ["sm_80", "sm_90"]
    assert machine[1].content[:4] == b"\x7fELF"
    assert [kernel.name for image in machine for kernel in image.kernels] == ["saxpy", "saxpy"]
    assert machine[1].kernels[0].registers == fat.kernels[1].registers
    assert [device["modules"][0]["outcome"] for device in inspection.devices] == ["loads", "loads"]
    with pytest.raises(gpulower.TargetError):
        gpulower.inspect(fat, device="sm_x")
    with pytest.raises(gpulower.ImageError):
        gpulower.inspect(b"nothing of the kind")


def test_packing() -> None:
    cubins = [gpulower.compile(SAXPY, target) for target in ("sm_80", "sm_90")]
    fat = gpulower.pack(cubins)
    assert [image.target for image in gpulower.inspect(fat).images] == ["sm_80", "sm_90"]
    small = gpulower.pack([("sm_80", cubins[0])], compress="zstd")
    assert len(small) < len(gpulower.pack(cubins[:1]))
    with pytest.raises(gpulower.ImageError, match="no container is called 'zip'"):
        gpulower.pack(cubins, "zip")


def test_exporting(tmp_path: Path) -> None:
    exported = gpulower.export(PROGRAM, "sm_90", form="self", file="app.o")
    assert exported[:4] == b"\x7fELF"
    assert "app.o" in exported.commands
    assert list(exported.kernels) == ["k"]
    assert exported.write(tmp_path / "app.o").read_bytes() == exported
    with pytest.raises(gpulower.ExportError, match="say which clang finishes the program"):
        gpulower.export(PROGRAM, "sm_90")


def test_writing_over_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = gpulower.compile(SAXPY, "sm_90")
    monkeypatch.chdir(tmp_path)
    file, link, dangling = Path("k.cubin"), Path("link.cubin"), Path("dangling.cubin")
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    dangling.symlink_to("made.cubin")
    assert artifact.write(link) == link
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o7777) == (artifact, 0o640)
    artifact.write(dangling)
    assert (dangling.is_symlink(), Path("made.cubin").read_bytes()) == (True, artifact)
    pipe = Path("pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    artifact.write(pipe)
    assert os.read(reader, 1 << 20) == artifact
    os.close(reader)
    artifact.write("/dev/null")
    assert Path("/dev/null").is_char_device()
    assert sorted(map(str, Path().iterdir())) == ["dangling.cubin", "k.cubin", "link.cubin", "made.cubin", "pipe"]


def test_writing_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = gpulower.compile(SAXPY, "sm_90")
    exported = gpulower.export(PROGRAM, "sm_90", form="self")
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    for path, kind in (("none/k.cubin", FileNotFoundError), ("loop", OSError)):
        with pytest.raises(kind) as raised:
            artifact.write(path)
        assert (raised.value.filename, raised.value.filename2) == (path, None)
    with pytest.raises(IsADirectoryError) as raised:
        exported.write(".")
    assert raised.value.filename == "."
    assert artifact.write(".").read_bytes() == artifact


def test_targets() -> None:
    chips = {target.name: target for target in gpulower.targets()}
    assert chips["sm_90"].vendor == "nvidia"
    assert "clusters" in chips["sm_90"].features
    assert chips["gfx942"].finished_by


def test_the_doctor() -> None:
    doctor = gpulower.doctor()
    assert doctor.found("libdevice.10.bc")
    assert str(doctor).startswith("gpulower ")
    with pytest.raises(KeyError, match="no part is called 'nvcc': there are ptxas"):
        doctor.found("nvcc")


def test_nvidias_wheels_are_found_where_pip_put_them(tmp_path: Path) -> None:
    """Both layouts: cu13 is a toolkit, cu12 has a folder for each wheel."""
    cuda = Path(os.environ["CUDA_HOME"])
    thirteen, twelve = tmp_path / "thirteen", tmp_path / "twelve"
    (thirteen / "nvidia").mkdir(parents=True)
    (thirteen / "nvidia/cu13").symlink_to(cuda)
    (twelve / "nvidia").mkdir(parents=True)
    (twelve / "nvidia/cuda_nvcc").symlink_to(cuda / "cuda-12.4")
    script = "import gpulower; print(gpulower.doctor().found('ptxas')); gpulower.compile(open(0).read(), 'sm_90', cache=False)"
    for folder, place in ((thirteen, "nvidia/cu13/bin/ptxas"), (twelve, "nvidia/cuda_nvcc/bin/ptxas")):
        environment = {
            "PATH": "/nonexistent",
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        }
        done = run(sys.executable, "-c", script, given=SAXPY, env=environment)
        assert (done.stdout, done.stderr) == (f"{folder / place}\n", "")


def program(*arguments: str, status: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "gpulower", *arguments, status=status, cwd=cwd)


def test_the_programs(tmp_path: Path) -> None:
    (tmp_path / "saxpy.mlir").write_text(SAXPY)
    (tmp_path / "broken.mlir").write_text(BROKEN)
    done = program("compile", "saxpy.mlir", "--target", "sm_90", "-o", "saxpy.cubin", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "saxpy.cubin").read_bytes() == gpulower.compile(SAXPY, "sm_90")
    own = ["--isolation=worker", "--no-cache"]
    done = program("compile", "saxpy.mlir", "--target", "sm_90", "-o", "again.cubin", *own, cwd=tmp_path)
    assert done.stderr == ""
    assert (tmp_path / "again.cubin").read_bytes() == (tmp_path / "saxpy.cubin").read_bytes()
    done = program("compile", "broken.mlir", "--target", "sm_90", cwd=tmp_path, status=1)
    assert "broken.mlir:3:5: error: input" in done.stderr
    program("compile", "--no-such-thing", status=2)
    assert program("--version").stdout.startswith("gpulower ")
    opt = [sys.executable, "-c", "import sys; from gpulower._programs import opt_main; sys.exit(opt_main())"]
    passes = "builtin.module(gpulower-attach-targets{targets=sm_90}, gpulower-lower)"
    opt += [f"--pass-pipeline={passes}", str(tmp_path / "saxpy.mlir")]
    assert "llvm.func @saxpy" in run(*opt).stdout


def test_linking_from_the_command_line(tmp_path: Path) -> None:
    for number in range(2):
        gpulower.compile(kernel(number), "gfx942", emit="object").write(tmp_path / f"{number}.o")
    done = program("link", "0.o", "1.o", "--target", "gfx942", "-o", "linked.hsaco", cwd=tmp_path)
    assert done.stderr == ""
    assert {kernel.name for kernel in gpulower.inspect(tmp_path / "linked.hsaco").kernels} == {"k0", "k1"}
