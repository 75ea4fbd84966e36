"""Calls of machine code from Python.

single_calls   one state
batch_calls    many states, threads
rollout_calls  many steps of many states
"""
