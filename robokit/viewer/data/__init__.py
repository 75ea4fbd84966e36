"""The parts of a page's data.

motion_data        frames, curves and figures of a motion
own_curves         curves of the caller's own
comparison_data    two runs beside each other
force_data         contact forces of the robot and of its links, step by step
step_states        the states of every step
thin_curves        fewer points, every peak kept
key_frames         frames for the hardest contacts between the records
event_data         events, tables by link and by joint
answer_data        answers, assumptions, the books
mass_matrix_data   patterns of the mass matrix and of its factors
live_data          the step of a run as WebAssembly
motors_data        its driven joints and their targets
kept_data          what follows from the robot alone, kept on disk
packing            arrays as base64 text
"""
