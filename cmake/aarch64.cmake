# Toolchain file: the run-time for AArch64 Linux, built with clang and Debian's cross libraries
# (libc6-dev-arm64-cross, libstdc++-12-dev-arm64-cross); linked whole, so that it runs anywhere.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../llvm_version.txt llvm)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-${llvm})
set(CMAKE_CXX_COMPILER clang++-${llvm})
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -static")
