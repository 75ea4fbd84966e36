"""The parts of a page's data.

motion_data        frames, curves and figures of a motion
own_curves         curves of the caller's own
force_data         contact forces of the robot and of its links, step by step
step_states        the states of every step, and frames for the hardest contacts
thin_curves        fewer points, every peak kept
event_data         events, answers, assumptions, tables by link and by joint
live_data          the step of a run as WebAssembly, its driven joints and their targets
kept_data          what follows from the robot alone, kept on disk
packing            arrays as base64 text
"""
