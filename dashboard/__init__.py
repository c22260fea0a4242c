"""The Streamlit dashboard: read-only views over stores."""
