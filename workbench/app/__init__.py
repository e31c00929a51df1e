"""Parts of the Streamlit app common to all pages: the frame around pages, the URL's state, the server and its guard."""
