"""Time other solvers and spdc on the same problems: ./run bench peers [DATA_DIR]."""
