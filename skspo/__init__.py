from .regions import *
