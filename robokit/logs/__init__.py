"""Logs of a real robot: read, compared with the model, and what they say of it.

recording      what a log holds, as it was written: CSV and NumPy files, ROS bags, MCAP files
bag_child      the process that reads them; states of joints in a message of any format
read           read_log: a log as a trajectory of a robot, and what is odd about it
torques        forces that the model cannot explain, from smoothed motion
replay         the simulation beside a log, and the page of both
identify       identify_log: parameters from a log, and what they leave
joint_stream   states of joints that come in line by line
"""

from robokit.logs.identify import LogIdentification, identify_log
from robokit.logs.read import read_log
from robokit.logs.replay import simulate_log, write_log_page
from robokit.logs.torques import TorqueComparison, unexplained_torques

__all__ = [
    "LogIdentification",
    "TorqueComparison",
    "identify_log",
    "read_log",
    "simulate_log",
    "unexplained_torques",
    "write_log_page",
]
