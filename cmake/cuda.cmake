# The CUDA toolkit, as far as the build needs it: nvcc for the kernels and <cuda.h> for types. Nothing of it is linked.
#
# Sets TALARIA_NVCC, TALARIA_CUDA_INCLUDE and TALARIA_GENCODE (a list of -gencode flags), makes talaria_cuda_headers.
find_program(TALARIA_NVCC nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda PATH_SUFFIXES bin)
if(NOT TALARIA_NVCC)
  message(FATAL_ERROR "TALARIA_CUDA is ON but nvcc was not found. Set CUDA_HOME, or use the preset cpu.")
endif()
file(REAL_PATH ${TALARIA_NVCC} talaria_nvcc_file)
cmake_path(GET talaria_nvcc_file PARENT_PATH talaria_nvcc_folder)
find_path(TALARIA_CUDA_INCLUDE cuda.h HINTS ${talaria_nvcc_folder}/.. PATH_SUFFIXES include targets/x86_64-linux/include REQUIRED)

# An entry X gives machine code for sm_X; X-ptx gives PTX that later GPUs compile when they load it.
set(TALARIA_GENCODE "")
foreach(architecture IN LISTS TALARIA_CUDA_ARCHITECTURES)
  if(architecture MATCHES "^([0-9]+[af]?)-ptx$")
    list(APPEND TALARIA_GENCODE -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
  else()
    list(APPEND TALARIA_GENCODE -gencode=arch=compute_${architecture},code=sm_${architecture})
  endif()
endforeach()

add_library(talaria_cuda_headers INTERFACE)
target_include_directories(talaria_cuda_headers SYSTEM INTERFACE ${TALARIA_CUDA_INCLUDE})
