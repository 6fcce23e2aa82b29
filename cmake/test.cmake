# talaria_test(name SOURCES ... [USES layers or targets ...] [LABELS ...] [TIMEOUT seconds]): a GoogleTest program.
#
# Every test case becomes one ctest test, so that a summary counts cases, and a skipped case counts as skipped.
find_package(GTest REQUIRED)
include(GoogleTest)

function(talaria_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;USES;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  foreach(used IN LISTS TEST_USES)
    if(TARGET talaria_${used})
      target_link_libraries(${name} PRIVATE talaria_${used})
    else()
      target_link_libraries(${name} PRIVATE ${used})
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  gtest_discover_tests(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT} DISCOVERY_TIMEOUT 60)
endfunction()
