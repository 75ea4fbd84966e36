"""Logs of a real robot: read, compared with the model, and what they say of it.

recording      what a log holds, as it was written: CSV and NumPy files, ROS bags, MCAP files, lines of JSON
bag_child      the process that reads bags; states of joints in a message of any format
read           read_log: a log as a trajectory of a robot, and what is odd about it
comparison     the model beside a log: forces unexplained, identify_log, the simulation and the page of both
"""

from robokit.logs.comparison import (
    LogIdentification,
    TorqueComparison,
    identify_log,
    simulate_log,
    unexplained_torques,
    write_log_page,
)
from robokit.logs.read import read_log

__all__ = [
    "LogIdentification",
    "TorqueComparison",
    "identify_log",
    "read_log",
    "simulate_log",
    "unexplained_torques",
    "write_log_page",
]
