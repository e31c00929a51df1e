"""Parts of pages that need Streamlit: figures with their exports, tables, job progress, controls."""
