# Compiler flags that hold for everything we compile.
add_compile_options(-Wall -Wextra)
# Results must not depend on the instruction set: an a*b+c that one build fuses and another does not differs in a bit.
add_compile_options(-ffp-contract=off)
# Paths in debug information and __FILE__ begin at the repository, so that builds in different folders are the same.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(TALARIA_SANITIZER STREQUAL "address")
  # GCC 12 takes what the sanitizer adds to <functional> for uninitialised reads.
  # Callers of the C API may pass any number where it has an enum.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=enum -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1 -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=address,undefined)
elseif(TALARIA_SANITIZER STREQUAL "thread")
  # GCC warns that ThreadSanitizer does not see fences; what we order with fences is covered by the simulator.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -O1 -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(TALARIA_SANITIZER)
  message(FATAL_ERROR "TALARIA_SANITIZER is '${TALARIA_SANITIZER}'; it may be address or thread.")
endif()

option(TALARIA_FUZZER "Instrument everything for libFuzzer and build fuzz_libfuzzer (needs clang)" OFF)
if(TALARIA_FUZZER)
  add_compile_options(-fsanitize=fuzzer-no-link,address)
  add_link_options(-fsanitize=address)
endif()
