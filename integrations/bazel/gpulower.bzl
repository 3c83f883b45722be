"""GPU kernels, compiled by gpulower as hermetic actions: everything that is read is an input, and nothing is asked of the environment.

    gpulower_toolkit(name = "gpulower", program = "//tools:gpulower", cuda = "//tools:cuda")

    gpulower_kernels(name = "kernels", srcs = ["swish.mlir"], targets = ["sm_80", "sm_90"], toolkit = ":gpulower")
"""

GpulowerToolkit = provider(
    doc = "The program, and the folders of what it needs of NVIDIA and AMD.",
    fields = {"program": "executable", "cuda": "files", "cuda_root": "path or None", "rocm": "files", "rocm_root": "path or None"},
)

def _root(files, marks):
    """The folder that a toolkit's files are in, by one that each toolkit has."""
    for file in files:
        for mark in marks:
            if file.path.endswith("/" + mark):
                return file.path[:-len(mark) - 1]
    return None

def _toolkit(ctx):
    cuda = ctx.files.cuda
    rocm = ctx.files.rocm
    cuda_root = _root(cuda, ["bin/ptxas", "nvvm/libdevice/libdevice.10.bc"])
    rocm_root = _root(rocm, ["amdgcn/bitcode/ocml.bc", "ocml.bc"])
    if cuda and not cuda_root:
        fail("neither bin/ptxas nor nvvm/libdevice/libdevice.10.bc is among the files of cuda")
    if rocm and not rocm_root:
        fail("ocml.bc is not among the files of rocm")
    return [GpulowerToolkit(
        program = ctx.attr.program[DefaultInfo].files_to_run,
        cuda = cuda,
        cuda_root = cuda_root,
        rocm = rocm,
        rocm_root = rocm_root,
    )]

gpulower_toolkit = rule(
    implementation = _toolkit,
    attrs = {
        "program": attr.label(mandatory = True, executable = True, cfg = "exec", allow_files = True, doc = "gpulower"),
        "cuda": attr.label(cfg = "exec", doc = "bin/ptxas and nvvm/libdevice/libdevice.10.bc of a CUDA toolkit"),
        "rocm": attr.label(cfg = "exec", doc = "ROCm's device libraries"),
    },
    doc = "What compiles kernels.",
)

_EXTENSIONS = {"bundle": "hipfb", "fatbin": "fatbin", "offload": "offload", "ptx": "ptx"}

def _kernels(ctx):
    toolkit = ctx.attr.toolkit[GpulowerToolkit]
    outputs = []
    for source in ctx.files.srcs:
        # A folder for each rule: two rules may compile one source with other options.
        name = source.basename[:-len(source.extension) - 1]
        output = ctx.actions.declare_file("{}/{}.{}".format(ctx.label.name, name, _EXTENSIONS[ctx.attr.emit]))
        arguments = ctx.actions.args()
        arguments.add("compile")
        words = ctx.actions.args()
        words.set_param_file_format("shell")
        words.use_param_file("@%s")
        words.add(source)
        words.add_joined("--target", ctx.attr.targets, join_with = ",")
        words.add("--emit", ctx.attr.emit)
        words.add("--hermetic")
        words.add_all(ctx.files.link, before_each = "--link")
        if toolkit.cuda_root:
            words.add("--cuda", toolkit.cuda_root)
        if toolkit.rocm_root:
            words.add("--rocm", toolkit.rocm_root)
        words.add_all(ctx.attr.options)
        words.add("-o", output)
        ctx.actions.run(
            executable = toolkit.program,
            arguments = [arguments, words],
            inputs = depset([source] + ctx.files.link + toolkit.cuda + toolkit.rocm),
            outputs = [output],
            # Nothing of the client's: PATH included.
            env = {},
            mnemonic = "GpulowerCompile",
            progress_message = "Compiling kernels of " + source.short_path,
        )
        outputs.append(output)
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs))]

gpulower_kernels = rule(
    implementation = _kernels,
    attrs = {
        "srcs": attr.label_list(
            mandatory = True,
            allow_files = [".mlir", ".mlirbc", ".ll", ".bc", ".ptx"],
            doc = "Each makes one file",
        ),
        "targets": attr.string_list(mandatory = True, doc = "such as sm_90, gfx942"),
        "emit": attr.string(default = "fatbin", values = _EXTENSIONS.keys()),
        "link": attr.label_list(allow_files = [".bc", ".ll"], doc = "Libraries of device code"),
        "options": attr.string_list(doc = "More words for `gpulower compile`, such as --include-ptx=newest"),
        "toolkit": attr.label(mandatory = True, providers = [GpulowerToolkit]),
    },
    doc = "Kernels for all of the targets.",
)

def _installed(ctx):
    program = ctx.path(ctx.attr.program)
    ctx.symlink(program, "gpulower")
    cuda = ctx.attr.cuda
    parts = ["bin/ptxas", "nvvm/libdevice/libdevice.10.bc"] if cuda else []
    for part in parts:
        ctx.symlink("{}/{}".format(cuda, part), "cuda/" + part)
    ctx.file("BUILD.bazel", """
load("{rules}", "gpulower_toolkit")

filegroup(name = "cuda_files", srcs = {parts})

gpulower_toolkit(
    name = "toolkit",
    program = "gpulower",
    cuda = {cuda},
    visibility = ["//visibility:public"],
)
""".format(
        rules = ctx.attr._rules,
        parts = repr(["cuda/" + part for part in parts]),
        cuda = repr(":cuda_files") if cuda else "None",
    ))

gpulower_installed = repository_rule(
    implementation = _installed,
    attrs = {
        "program": attr.string(mandatory = True, doc = "The whole path of gpulower on this machine"),
        "cuda": attr.string(doc = "The whole path of a CUDA toolkit on this machine"),
        "_rules": attr.label(default = "//:gpulower.bzl"),
    },
    doc = "A repository with the target //:toolkit, of what is installed on this machine. Its files are inputs of actions: a remote " +
          "worker gets them, and needs none of its own.",
)
