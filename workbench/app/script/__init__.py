"""What Streamlit runs at every view: by itself, because Streamlit puts its folder before all others in sys.path."""
