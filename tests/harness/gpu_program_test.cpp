// How GPU programs start, are found, and are built on a machine that has nothing of ours: the scripts as they
// are, on folders and compilers made for the test.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/program.h"

namespace lockstep::harness::gpu_program_test {

namespace fs = std::filesystem;
using testing::Answer;
using testing::Folder;

const fs::path source = LOCKSTEP_SOURCE_DIR;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void write_script(const fs::path& path, const std::string& text) {
  write(path, "#!/bin/bash\n" + text);
  fs::permissions(path, fs::perms::owner_all);
}

void carry(const std::string& path, const fs::path& to) {
  fs::create_directories((to / path).parent_path());
  fs::copy_file(source / path, to / path);
}

void check_one_line(const Answer& answer, int exit_code, const std::vector<std::string>& says) {
  CHECK(answer.exit_code == exit_code);
  CHECK(answer.out.empty());
  CHECK(std::count(answer.diagnostics.begin(), answer.diagnostics.end(), '\n') == 1);
  testing::check_says(answer.diagnostics, says);
}

// A program of two libraries that are nowhere, and what starts it.
class NeedyProgram {
 public:
  NeedyProgram() {
    fs::create_directories(root_ / "libexec");
    fs::copy_file(source / "validate/harness/start_gpu_program", root_ / "needy");
    write(root_ / "a.c", "int first(void) { return 1; }");
    write(root_ / "b.c", "int second(void) { return 2; }");
    write(root_ / "m.c",
          "#include <stdio.h>\nint first(void); int second(void);\n"
          "int main(int n, char** words) { printf(\"%d %s\\n\", first() + second(), words[n - 1]); return 5; "
          "}");
    const Answer built = testing::run_command(
        "cd " + root_.string() +
        " && cc -shared -fPIC -Wl,-soname,liblstfirst.so.9 a.c -o liblstfirst.so.9 && cc -shared -fPIC "
        "-Wl,-soname,liblstsecond.so.2 b.c -o liblstsecond.so.2 && cc m.c -o libexec/needy "
        "./liblstfirst.so.9 ./liblstsecond.so.2");
    CAPTURE(built.diagnostics);
    REQUIRE(built.exit_code == 0);
  }

  void move_library(const std::string& library, const std::string& to) const {
    fs::create_directories(root_ / to);
    fs::rename(root_ / library, root_ / to / library);
  }
  Answer run(const std::string& environment) const {
    return testing::run_command("cd / && " + environment + " " + (root_ / "needy").string() + " word");
  }
  std::string path(const std::string& inside) const { return (root_ / inside).string(); }

 private:
  Folder folder_;
  fs::path root_ = fs::path(folder_.path()) / "programs";
};

TEST_CASE("A GPU program whose libraries are nowhere says in one line which, and where it looked") {
  const NeedyProgram program;
  fs::create_directories(program.path("env/lib/python3.11/site-packages/nvidia/cudnn/lib"));
  const Answer answer = program.run("VIRTUAL_ENV=" + program.path("env"));
  check_one_line(answer, 4,
                 {"needy: missing: liblstfirst.so.9 liblstsecond.so.2", "LD_LIBRARY_PATH",
                  program.path("env/lib/python3.11/site-packages/nvidia/cudnn/lib")});
}

TEST_CASE("Libraries are found in a Python environment and in CUDA's folder, and the program is what runs") {
  const NeedyProgram program;
  program.move_library("liblstfirst.so.9", "env/lib/python3.11/site-packages/nvidia/cudnn/lib");
  program.move_library("liblstsecond.so.2", "cuda/lib64");
  const std::string environment = "VIRTUAL_ENV=" + program.path("env") + " CUDA_HOME=" + program.path("cuda");
  const Answer answer = program.run(environment);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 5);
  CHECK(answer.out == "3 word\n");
  CHECK(answer.diagnostics.empty());
  check_one_line(program.run("VIRTUAL_ENV=" + program.path("env")), 4, {"missing: liblstsecond.so.2;"});
}

// A library whose functions bear a version that the one found in its stead has not.
TEST_CASE("A C library that is too old is said, with what to do, instead of the loader's words") {
  const NeedyProgram program;
  const auto build = [&](const std::string& version) {
    write(program.path("v.map"), version + " { first; };");
    return testing::run_command(
        "cd " + program.path("") +
        " && cc -shared -fPIC -Wl,-soname,liblstfirst.so.9 -Wl,--version-script=v.map a.c -o "
        "liblstfirst.so.9");
  };
  REQUIRE(build("GLIBC_2.99").exit_code == 0);
  REQUIRE(testing::run_command("cd " + program.path("") +
                               " && cc m.c -o libexec/needy ./liblstfirst.so.9 ./liblstsecond.so.2")
              .exit_code == 0);
  REQUIRE(build("GLIBC_2.1").exit_code == 0);
  check_one_line(program.run("LD_LIBRARY_PATH=" + program.path("")), 4,
                 {"C library is older than GLIBC_2.99", "validate/build_harness_here"});
}

TEST_CASE("A GPU program that is not there is named") {
  const NeedyProgram program;
  fs::remove(program.path("libexec/needy"));
  check_one_line(program.run(""), 4, {"needy: ", "libexec/needy is not there"});
}

// A checkout with the search for programs, and a build that leaves what `build` writes into $2.
class Checkout {
 public:
  explicit Checkout(const std::string& build) {
    carry("validate/gpu_program.sh", root_);
    write_script(root_ / "validate/build_harness_here", build);
  }
  void add_program(const std::string& folder, int exit_code) const {
    write_script(root_ / folder / "lockstep_ddp_cuda",
                 "echo it does not start here >&2; exit " + std::to_string(exit_code));
  }
  Answer find() const {
    return testing::run_command("bash -c 'set -e; source " + (root_ / "validate/gpu_program.sh").string() +
                                "; find_or_build_gpu_program " + (root_ / "own").string() + "'");
  }
  std::string path(const std::string& folder) const { return (root_ / folder).string(); }

 private:
  Folder folder_;
  fs::path root_ = fs::path(folder_.path()) / "checkout";
};

const std::string builds =
    "mkdir -p $2 && printf '#!/bin/sh\\n' > $2/lockstep_ddp_cuda && chmod +x $2/*; echo built";

TEST_CASE("Of the GPU programs at hand the first that starts is taken, and none is built") {
  const Checkout checkout("touch $2.was_built");
  checkout.add_program("bin", 4);
  checkout.add_program("build", 0);
  CHECK(checkout.find().out == checkout.path("build") + "\n");
  checkout.add_program("bin", 0);
  CHECK(checkout.find().out == checkout.path("bin") + "\n");
  CHECK_FALSE(fs::exists(checkout.path("own.was_built")));
}

TEST_CASE("A GPU program that is nowhere, or does not start, is built") {
  const Checkout checkout(builds);
  checkout.add_program("bin", 4);
  const Answer answer = checkout.find();
  CHECK(answer.exit_code == 0);
  CHECK(answer.out == checkout.path("own") + "\n");
}

TEST_CASE("Where no GPU program starts and none can be built one line says why") {
  const Checkout checkout("echo building >&2; echo no nvcc >&2; exit 4");
  check_one_line(checkout.find(), 4, {"no GPU program: no nvcc"});
  checkout.add_program("bin", 4);
  check_one_line(checkout.find(), 4, {"it does not start here", "no nvcc"});
}

// Compilers that only note what they were given.
class FakeToolkit {
 public:
  FakeToolkit() {
    const std::string compile =
        "case \"$*\" in *-fsyntax-only*) exit 0 ;; *$FAILS_ON*) echo 'x.cpp:1: error: no' ; exit 1 ;; esac\n"
        "echo \"$*\" >> " +
        path("calls") + "\nwhile [ \"$1\" != -o ]; do shift; done; echo built > \"$2\"\n";
    write_script(path("cuda/bin/nvcc"), compile);
    write_script(path("cxx"), compile);
    write(path("cuda/lib64/libcudart_static.a"), "");
    write(path("cuda/lib64/libcublas.so"), "");
  }
  Answer build(const std::string& environment = "FAILS_ON=nothing") const {
    return testing::run_command("NVCC=" + path("cuda/bin/nvcc") + " CXX=" + path("cxx") + " " + environment +
                                " VIRTUAL_ENV=" + path("env") + " HOME=" + path("home") + " " +
                                (source / "validate/build_harness_here").string() + " -o " + path("out"));
  }
  std::string path(const std::string& inside) const { return folder_.path() + "/" + inside; }
  std::string calls() const { return testing::text_of(path("calls")); }

 private:
  Folder folder_;
};

TEST_CASE(
    "A machine with nvcc and a C++ compiler builds the program of all GPU sources and none of the CPU's") {
  const FakeToolkit toolkit;
  const Answer answer = toolkit.build();
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  CHECK(fs::exists(toolkit.path("out/libexec/lockstep_ddp_cuda")));
  CHECK(fs::exists(toolkit.path("out/lockstep_ddp_cuda")));
  testing::check_says(toolkit.calls(), {"cuda_device.cu", "harness/main.cpp", "bucketing.cpp",
                                        "base/failure.cpp", "libcudart_static.a", "-static-libstdc++"});
  for (const std::string absent : {"gloo_communicator.cpp", "cpu_device.cpp", "stand_in"})
    CHECK_FALSE(testing::contains(toolkit.calls(), absent));
}

TEST_CASE("cuDNN is found in a Python environment") {
  const FakeToolkit toolkit;
  const std::string package = "env/lib/python3.11/site-packages/nvidia/cudnn/";
  write(toolkit.path(package + "include/cudnn.h"), "");
  write(toolkit.path(package + "lib/libcudnn.so.9"), "");
  const Answer answer = toolkit.build();
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  testing::check_says(toolkit.calls(), {"-DLOCKSTEP_HAS_CUDNN", "cuda_convolutions.cpp",
                                        toolkit.path(package + "lib/libcudnn.so.9")});
}

// The link in PATH lies in another environment than the packages.
TEST_CASE(
    "Where the toolkit is the compiler alone, cuBLAS is found where Python says that its packages are") {
  const FakeToolkit toolkit;
  fs::remove(toolkit.path("cuda/lib64/libcublas.so"));
  const std::string package = toolkit.path("deep/nvidia/cu13");
  write(package + "/lib/libcublas.so.13", "");
  write(package + "/include/cublas_v2.h", "");
  write_script(toolkit.path("bin/python3"), "echo " + toolkit.path("deep/nvidia"));
  const Answer answer = toolkit.build("FAILS_ON=nothing PATH=" + toolkit.path("bin") + ":$PATH");
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  testing::check_says(toolkit.calls(),
                      {package + "/lib/libcublas.so.13", "-isystem " + package + "/include"});
}

TEST_CASE("The GPUs to build for may be named") {
  const FakeToolkit toolkit;
  REQUIRE(toolkit.build("FAILS_ON=nothing CUDA_ARCHITECTURES='75 120'").exit_code == 0);
  testing::check_says(toolkit.calls(), {"arch=compute_75,code=[compute_75,sm_75]", "compute_120"});
}

TEST_CASE(
    "A source that does not compile is named, with the compiler's first error, and no program is left") {
  const FakeToolkit toolkit;
  const Answer answer = toolkit.build("FAILS_ON=cuda_products.cpp");
  CHECK(answer.exit_code == 4);
  testing::check_says(answer.diagnostics, {"error: no", "cuda_products.cpp does not compile"});
  CHECK_FALSE(fs::exists(toolkit.path("out/lockstep_ddp_cuda")));
}

TEST_CASE("What a build on a bare machine lacks is said in one line, and wrong arguments end with 2") {
  const std::string build = (source / "validate/build_harness_here").string();
  const Folder folder;
  const std::string out = " -o " + folder.path() + "/out";
  check_one_line(testing::run_command("NVCC=/bin/true CXX=/no/such/compiler " + build + out), 4,
                 {"no C++20 compiler"});
  check_one_line(testing::run_command(build + " --output x"), 2, {"usage"});
  check_one_line(testing::run_command(build + " -o /dev/null/out"), 2, {"cannot write to /dev/null/out"});
}

TEST_CASE("A bundle holds the sources, their headers and what builds them") {
  const Folder folder;
  const std::string bundle = (source / "validate/harness_bundle").string();
  const std::string file = folder.path() + "/bundle.tar.gz";
  const Answer answer = testing::run_command(bundle + " -o " + file + " --program " + folder.path());
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  const Answer listed = testing::run_command("tar tzf " + file);
  testing::check_says(
      listed.out,
      {"lockstep/validate/build_harness_here", "lockstep/validate/gpu_program.sh",
       "lockstep/validate/harness/device/cuda_device.cu", "lockstep/sim/training/bucketing.cpp",
       "lockstep/third_party/include/asio.hpp", "lockstep/third_party/include/fmt/format.h",
       "lockstep/third_party/include/CLI/CLI.hpp", "lockstep/third_party/include/nlohmann/json.hpp",
       "lockstep/third_party/include/sodium.h", "/libsodium.a"});
  CHECK_FALSE(testing::contains(listed.out, "lockstep/bin"));
}

TEST_CASE("A bundle that was asked for wrongly is not begun") {
  const std::string bundle = (source / "validate/harness_bundle").string();
  check_one_line(testing::run_command(bundle), 2, {"-o FILE"});
  check_one_line(testing::run_command(bundle + " -o /no/such/folder/x.tar.gz"), 2, {"cannot write"});
  check_one_line(testing::run_command(bundle + " -o x --with ncll"), 2, {"\"ncll\"", "nccl, cudnn, cublas"});
  check_one_line(testing::run_command(bundle + " --to x"), 2, {"--to: no such option"});
}

}  // namespace lockstep::harness::gpu_program_test
