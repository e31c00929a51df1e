"""The script of every view, in its own folder, because Streamlit puts this folder first in sys.path."""
