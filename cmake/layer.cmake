# talaria_layer(name SOURCES ... USES ...): one static library per layer, linked only with the layers it may use.
# tools/check_layers.py checks the same rule on the includes.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

function(talaria_layer name)
  cmake_parse_arguments(LAYER "" "" "SOURCES;USES" ${ARGN})
  add_library(talaria_${name} STATIC ${LAYER_SOURCES})
  target_include_directories(talaria_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(talaria_${name} PUBLIC Threads::Threads)
  foreach(used IN LISTS LAYER_USES)
    target_link_libraries(talaria_${name} PUBLIC talaria_${used})
  endforeach()
endfunction()
