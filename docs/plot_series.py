"""Plots one signal of a released series: python3 plot_series.py hourly-steps.released.ndjson StepTotal steps.png"""
import sys
import pandas as pd
import matplotlib.pyplot as plt
path, signal, picture = sys.argv[1:]
rows = pd.read_json(path, lines=True)
rows.index = pd.to_datetime(rows.pop("bucket"), format="ISO8601", utc=True)
rows = rows[rows.signal == signal].dropna(subset=["mean"])
everybody, cohorts = rows[rows.cohort.isna()], rows[rows.cohort.notna()]
plt.figure(figsize=(12, 5))
for _, cohort in cohorts.groupby("cohort"):
    plt.plot(cohort["mean"], color="lightgray")
plt.fill_between(everybody.index, everybody["mean"] - everybody.sd, everybody["mean"] + everybody.sd, alpha=0.2)
plt.plot(everybody["mean"], label=f"{signal}: mean of all published cohorts, and one standard deviation between people")
plt.legend()
plt.gcf().autofmt_xdate()
plt.savefig(picture)
