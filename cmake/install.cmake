# cmake --install: the library, nccl.h, a CMake package (talaria::nccl) and nccl.pc.
install(TARGETS nccl EXPORT talaria_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

include(CMakePackageConfigHelpers)
set(talaria_package ${CMAKE_INSTALL_LIBDIR}/cmake/talaria)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/talariaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/talariaConfig.cmake INSTALL_DESTINATION ${talaria_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/talariaConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT talaria_targets FILE talariaTargets.cmake NAMESPACE talaria:: DESTINATION ${talaria_package})
install(FILES ${PROJECT_BINARY_DIR}/talariaConfig.cmake ${PROJECT_BINARY_DIR}/talariaConfigVersion.cmake
  DESTINATION ${talaria_package})

# The folder of nccl.pc is the only path it knows, so that an installed tree can be moved.
file(RELATIVE_PATH talaria_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" talaria_pc_prefix "${talaria_pc_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/nccl.pc.in ${PROJECT_BINARY_DIR}/nccl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
