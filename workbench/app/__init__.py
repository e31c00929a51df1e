"""What of the Streamlit app is not of one page: the frame around pages, the URL's state, the server and its guard."""
