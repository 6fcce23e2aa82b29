# <cuda.h>, for the types of the driver API: the target talaria_cuda_headers. Nothing of the toolkit is linked.
find_program(TALARIA_NVCC nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} /usr/local/cuda PATH_SUFFIXES bin)
if(NOT TALARIA_NVCC)
  message(FATAL_ERROR "TALARIA_CUDA is ON but nvcc was not found. Set CUDA_HOME, or use the preset cpu.")
endif()
file(REAL_PATH ${TALARIA_NVCC} talaria_nvcc_file)
cmake_path(GET talaria_nvcc_file PARENT_PATH talaria_nvcc_folder)
find_path(TALARIA_CUDA_INCLUDE cuda.h
  HINTS ${talaria_nvcc_folder}/.. PATH_SUFFIXES include targets/x86_64-linux/include REQUIRED)

add_library(talaria_cuda_headers INTERFACE)
target_include_directories(talaria_cuda_headers SYSTEM INTERFACE ${TALARIA_CUDA_INCLUDE})
