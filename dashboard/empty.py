"""What to run next, where a page has nothing to show."""

import streamlit as st

FIRST_STEP = "roofbench run experiment=quick"
EXPERIMENTS = {
    "gemm": FIRST_STEP,
    "grouped_gemm": "roofbench run job=grouped_gemm",
    "attention": "roofbench run experiment=attention",
    "decode": "roofbench run experiment=decode",
    "decode_step": "roofbench run experiment=decode_step",
    "collective": "roofbench run experiment=collectives",
}


def nothing_matches(job: str, is_chosen: bool) -> None:
    """Say why a page is empty: the choices leave nothing, or nobody has measured it yet."""
    if is_chosen:
        st.info("No results match these choices. Clear a filter in the sidebar to see more.")
        return
    st.info(f"No {job} results yet." if job else "No results yet.")
    st.write("Measure them, then come back; this page looks for new results by itself:")
    st.code(EXPERIMENTS.get(job, FIRST_STEP), language=None)


def nothing_yet(failed: bool, store: str) -> None:
    """Say how to begin."""
    st.title("roofbench")
    if failed:
        st.write("Start the dashboard with another store: `roofbench dashboard PATH`")
        return
    st.info("No results yet.")
    st.write(f"Measure this machine; results go to {store} unless you say otherwise:")
    st.code(FIRST_STEP, language=None)
