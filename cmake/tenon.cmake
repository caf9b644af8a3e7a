# Build helpers: one target per layer, one executable per test file.

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING)
  # The headers alone: the installed library is this machine's.
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
else()
  find_package(fmt REQUIRED)
endif()

add_library(tenon_flags INTERFACE)
target_compile_options(tenon_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off
                                             -ffunction-sections -fdata-sections)
# GCC 12 warns of overlapping copies inside std::string's own code when it optimises.
target_compile_options(tenon_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
# Clang warns of what this library's std::stable_sort itself uses.
target_compile_options(tenon_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_include_directories(tenon_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(TENON_FUZZ)
  target_compile_options(tenon_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(TENON_SANITIZE)
  target_compile_options(tenon_flags INTERFACE -fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all)
  target_link_options(tenon_flags INTERFACE -fsanitize=${TENON_SANITIZE})
endif()

# tenon_layer(NAME DEPS layer… SOURCES file… [LINK library…]): the static library tenon_NAME of
# tenon/NAME, linking only the layers named.
function(tenon_layer name)
  cmake_parse_arguments(arg "" "" "DEPS;SOURCES;LINK" ${ARGN})
  add_library(tenon_${name} STATIC ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND tenon_)
  target_link_libraries(tenon_${name} PUBLIC tenon_flags fmt::fmt ${arg_DEPS} ${arg_LINK})
endfunction()

# tenon_test(NAME SOURCES file… LINK layer-or-library… [LABELS label…]): a GoogleTest executable
# registered with ctest under NAME.
function(tenon_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE tenon_flags ${arg_LINK} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}"
    ENVIRONMENT "TENON_SOURCE_DIR=${PROJECT_SOURCE_DIR};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/reports/${name}.xml;ASAN_OPTIONS=allocator_may_return_null=1")
endfunction()
