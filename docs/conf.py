"""The site: ``python -m sphinx -W --keep-going -n -b html docs docs/_build/html``, with the extra ``docs``."""

import os
import sys
import warnings

# Gallery scripts are small: BLAS threads would make them slower.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "_ext"))

import skspo  # noqa: E402  (after the number of threads is set)

project = "skspo"
author = "skspo developers"
copyright = author
version = release = skspo.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "mathml",
    "plain_docstrings",
    "region_pages",
    "link_names",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_ext", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]

# -- pages ------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"skspo {release}"
html_static_path = ["_static"]
html_css_files = ["skspo.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
highlight_language = "none"
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
html_math_renderer = "mathml"

# -- API --------------------------------------------------------------------------------------------------------------

nitpicky = True
autosummary_generate = True
# Names that differ in case only would be one file on some systems.
autosummary_filename_map = {"skspo.calibration.Transitions": "skspo.calibration.Transitions-class"}
autodoc_mock_imports = ["torch", "pyepo"]  # the pages of skspo.torch and skspo.pyepo need neither
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the template of classes does
numpydoc_class_members_toctree = False
# Conventions that are SciPy's are linked as names: the build needs no network.
nitpick_ignore = [
    ("py:func", "scipy.optimize.linprog"),
    ("py:func", "scipy.optimize.milp"),
    ("py:class", "scipy.optimize.LinearConstraint"),
    ("py:obj", "sklearn.model_selection.TunedThresholdClassifierCV"),
]

# -- gallery ----------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"quickstart\.py|__init__\.py",
    "backreferences_dir": "generated/gallery",
    "doc_module": ("skspo",),
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "min_reported_time": 1,
    "download_all_examples": False,
    "show_signature": False,
    "thumbnail_size": (600, 260),
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__str__"),
    "default_thumb_file": os.path.join(os.path.dirname(os.path.abspath(__file__)), "quickstart.png"),
    "within_subsection_order": "ExampleTitleSortKey",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
