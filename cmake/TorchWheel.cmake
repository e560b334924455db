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
