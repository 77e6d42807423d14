# shellcheck shell=bash disable=SC2034
# Debian packages by what they are needed for; read by ./quickstart, ./test and tests/fresh_root.

# To build and run ingot.
build_packages=(
  g++ cmake ninja-build mold
  libboost-json1.81-dev libcli11-dev libfmt-dev libspdlog-dev libxxhash-dev
  libpcre2-dev libutf8proc-dev libedit-dev libtomlplusplus-dev libnuma-dev
)

# To build and run ./test on top of that.
test_packages=(libgtest-dev librapidcheck-dev binutils clang-format-14)

# For ./test --all: the second compiler with its run-time libraries, and a fresh root.
all_packages=(clang-22 libclang-rt-22-dev debootstrap git)

# For -DINGOT_BUILD_BENCHMARKS=ON.
benchmark_packages=(libbenchmark-dev)
