"""Calls of machine code from Python.

single_calls   one state
numpy_layout   where things lie in the objects of CPython and NumPy
batch_calls    many states, threads
rollout_calls  many steps of many states
taped          values and derivatives of long texts, interpreted
plain_text     the text as it stands, where there is no machine code
"""
