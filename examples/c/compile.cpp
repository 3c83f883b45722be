// Compiles a kernel for two vendors, packs NVIDIA's, and says what is in the pack.
#include <gpulower.hpp>

#include <iostream>
#include <mutex>

int main() {
  const char *saxpy = R"(
    gpu.module @saxpy {
      gpu.func @saxpy(%p: memref<?xf32>, %a: f32) kernel {
        %i = gpu.global_id x
        %x = memref.load %p[%i] : memref<?xf32>
        %y = arith.mulf %x, %a : f32
        memref.store %y, %p[%i] : memref<?xf32>
        gpu.return
      }
    })";
  try {
    std::mutex mutex;
    std::size_t done = 0;
    gpulower::Config config;
    config.set("threads", "2").progress([&](const gpulower_progress &progress) {
      std::lock_guard<std::mutex> lock(mutex);
      done += progress.event == GPULOWER_PROGRESS_FINISHED;
    });
    gpulower::Compiler compiler(config);
    gpulower::Request request;
    request.input("saxpy.mlir", saxpy).set("target", "sm_90,gfx942").set("emit", "asm");
    gpulower::Result result = compiler.compile(request).value();
    gpulower::Request pack;
    for (const gpulower::Artifact &artifact : result.artifacts()) {
      std::cout << artifact.module << " for " << artifact.targets << ": " << artifact.format << "\n";
      if (artifact.format == "ptx")
        pack.image("saxpy.ptx", artifact.bytes).set("emit", "fatbin");
    }
    std::cout << done << " pieces of work\n";
    gpulower::Result packed = compiler.pack(pack).value();
    gpulower::Result inspected = compiler.inspect("saxpy.fatbin", packed.artifacts().front().bytes, "sm_90").value();
    std::cout << inspected.artifacts().size() << " image in the fat binary, for "
              << inspected.artifacts().front().targets << "\n";

    gpulower::Cancellation cancellation;
    cancellation.cancel();
    gpulower::Result cancelled = compiler.compile(request, &cancellation);
    std::cout << cancelled.errors().front().text << "\n";

    request.set("no-such-option", "1");
  } catch (const gpulower::Error &error) {
    std::cout << error.diagnostics().front().code << ": " << error.what() << "\n";
    return error.diagnostics().front().code == "E0202" ? 0 : 1;
  }
  return 1;
}
