"""What of the Streamlit app is not of one page: the frame around pages, the state in the URL, the server and its guard."""
