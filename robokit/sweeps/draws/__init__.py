"""What the rows of a sweep draw: distributions, random streams, parameters.

distributions      what a parameter may be: Uniform, Normal, Choice, Grid, Sobol
distribution_base  what these share
distribution_text  distributions as text, for the command line
parameter_table    the parameters: names, units, what they mean
row_parameters     what each row draws, or what its number decides
random_streams     random numbers by row: the same in every chunk
normal_quantile    normal variables, to the bit on every machine
"""
