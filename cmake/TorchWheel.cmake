# Links the libtorch of the `torch` wheel in the project's virtual environment, library by library:
# find_package(Torch) fails with a CUDA wheel where no CUDA toolkit is installed.
set(AAH_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python3
    CACHE FILEPATH "The Python whose torch package is linked")
execute_process(
  COMMAND ${AAH_PYTHON} -c
          "import importlib.util as u; print(list(u.find_spec('torch').submodule_search_locations)[0])"
  OUTPUT_VARIABLE AAH_TORCH_DIR
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "no torch package for ${AAH_PYTHON}: run `make setup`, or choose the preset "
                      "`core`, which needs no torch")
endif()

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE
  ${AAH_TORCH_DIR}/include ${AAH_TORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(torch_wheel INTERFACE ${AAH_TORCH_DIR}/lib)
target_link_options(torch_wheel INTERFACE -Wl,-rpath,${AAH_TORCH_DIR}/lib -Wl,--no-as-needed)
target_link_libraries(torch_wheel INTERFACE torch torch_cpu c10)

# The OpenMP runtime that the wheel brings, so that our parallel regions run on torch's threads and
# not on those of a second runtime. Link it where sources are compiled with -fopenmp.
file(GLOB torch_openmp_runtimes ${AAH_TORCH_DIR}/lib/libgomp*.so* ${AAH_TORCH_DIR}.libs/libgomp*.so*)
add_library(torch_openmp INTERFACE)
if(torch_openmp_runtimes)
  list(GET torch_openmp_runtimes 0 torch_openmp_runtime)
  target_link_libraries(torch_openmp INTERFACE ${torch_openmp_runtime})
else()
  target_link_libraries(torch_openmp INTERFACE gomp)
endif()

# aah_torch_headers(TARGET): compiles TARGET against one precompiled <torch/torch.h>, shared by all
# such targets; without it the header alone costs about half a minute per file.
function(aah_torch_headers target)
  target_link_libraries(${target} PRIVATE torch_wheel)
  # Executables are compiled as libraries are, else the compiler turns the header down.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  # For scripts/tidy.sh. Sources with compile options of their own stay out of the batches.
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${AAH_TORCH_BATCHES}"
                                             UNITY_BUILD_BATCH_SIZE 13)
  if(TARGET torch_headers)
    target_precompile_headers(${target} REUSE_FROM torch_headers)
  endif()
endfunction()

# Nothing but the precompiled header.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_headers.cc CONTENT "")
add_library(torch_headers OBJECT ${PROJECT_BINARY_DIR}/torch_headers.cc)
target_link_libraries(torch_headers PRIVATE torch_wheel aah_settings)
set_target_properties(torch_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(torch_headers PRIVATE -fPIC)
target_precompile_headers(torch_headers PRIVATE <torch/torch.h>)
