"""Calls of machine code from Python.

single_calls   one state
python_entry   the builtin function that Python calls, and where things lie in CPython's and NumPy's objects
batch_calls    many states, threads
rollout_calls  many steps of many states
plain_python   the function as it stands, where there is no machine code
"""
