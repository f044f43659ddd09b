"""Compares searches: python scripts/evaluate.py model=NAME,NAME search=NAME,NAME seed=1,2,3 [key=a,b ...]

Every key may have several values; all combinations are run, into one table (table.parquet, table.csv), with the anytime
curves (curves.parquet, curves.csv) and a picture of them for each model. Printed are the methods at equal evaluations and
at equal seconds. A search that draws nothing runs once, whatever the seeds.

    evaluate.py model=inception_v3 search=greedy,backtracking,beam seconds=30
    evaluate.py model=bert search=beam search.width=4,8,16 rules=default,atomic
    evaluate.py experiment=landscape          is there anything to search? (conf/experiment/)

Exit code: 0, 1 if a job failed (the others run on), 4 if a proof failed, 130 interrupted (what is done is kept).
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.evaluate(sys.argv[1:], __doc__))
