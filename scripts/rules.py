"""Shows, draws, proves and explains rules: python scripts/rules.py [verify|catalogue] [NAME or TAG ...] [key=value ...]

    rules.py                                    list all rules
    rules.py conv-batchnorm output=pictures     one rule as text, and drawn as SVG
    rules.py model=inception_v3                 where rules match, and what each match gains
    rules.py model=m.onnx why=NODE rule=NAME    why a rule does not match at a node
    rules.py verify fold                        prove the rules tagged fold on random instances
    rules.py catalogue models=[a.onnx,b.onnx]   how often each rule matches over the zoo, its blocks and these models

Exit code: 0, 4 if a rule is not proven, 1 error.
"""

import sys

from cgorl import cli

if __name__ == "__main__":
    sys.exit(cli.rules(sys.argv[1:], __doc__))
