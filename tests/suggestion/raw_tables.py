"""Tables that nobody prepared, made up for the tests of suggestions: nobody in them exists."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

CITIES = ("Berlin", "Hamburg", "Köln", "Bremen", "Essen", "Dresden", "Leipzig", "Bonn", "Mainz", "Kiel", "Ulm", "Trier")
FIRST = ("Ada", "Ben", "Clara", "Dario", "Eva", "Finn", "Greta", "Hugo", "Ines", "Jan", "Kim", "Lea", "Max", "Nora", "Otto")
LAST = ("Abel", "Bauer", "Conrad", "Dietz", "Ernst", "Fuchs", "Graf", "Hahn", "Imhof", "Jung", "Kern", "Lang", "Moser", "Neumann")
JOBS = tuple(f"{field} {level}" for field in ("nursing", "sales", "law", "transport", "teaching", "crafts", "farming", "music")
             for level in ("assistant", "specialist", "manager", "trainee", "director"))  # fmt: skip
DISEASES = ("none", "asthma", "diabetes", "hypertension", "migraine", "depression", "hepatitis")
PEOPLE = (
    "Patient No", "Full Name", "E-Mail", "Geburtsdatum", "age", "sex", "PLZ", "city", "Beruf", "income", "diagnosis", "visits",
    "insurance", "remarks",
)  # fmt: skip


def people(rows: int = 20_000, seed: int = 3) -> list[dict[str, Any]]:
    """People with 14 columns: spaces around values, gaps, ages that are words, mixed case."""
    draw = random.Random(seed)
    found = []
    for number in range(rows):
        age = min(97, max(0, int(draw.gauss(46, 20))))
        born = date(2026, 6, 30) - timedelta(days=age * 365 + draw.randrange(365))
        first, last = draw.choice(FIRST), draw.choice(LAST)
        city = draw.choices(CITIES, weights=range(len(CITIES), 0, -1))[0]
        sex = draw.choice(["m", "f"])
        found.append({
            "Patient No": 100_000 + number,
            "Full Name": f"{first} {last}",
            "E-Mail": f"{first}.{last}{number}@example.org".lower(),
            "Geburtsdatum": born.strftime("%d.%m.%Y"),
            "age": "unknown" if draw.random() < 0.01 else f" {age}" if draw.random() < 0.1 else age,
            "sex": sex.upper() if draw.random() < 0.02 else sex,
            "PLZ": f"{draw.choice([1, 2, 5, 8])}{draw.randrange(0, 40):02d}{draw.choice(['01', '17', '55'])}",
            "city": city if draw.random() > 0.05 else f"{city} ",
            "Beruf": None if draw.random() < 0.04 else draw.choices(JOBS, weights=range(1, len(JOBS) + 1))[0],
            "income": round(draw.lognormvariate(10.4, 0.5), 2),
            "diagnosis": draw.choices(DISEASES, weights=[50, 12, 10, 14, 8, 5, 1])[0],
            "visits": draw.randrange(0, 9),
            "insurance": draw.choice(["public", "private"]) if draw.random() > 0.03 else "",
            "remarks": None if draw.random() < 0.6 else f"seen on {born} by {draw.choice(LAST)}, file {draw.randrange(10**6)}",
        })  # fmt: skip
    return found


def write_csv(path: Path, rows: list[dict[str, Any]], sep: str = ";") -> Path:
    """The rows as a file with a line of names."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=sep)
        writer.writeheader()
        writer.writerows(rows)
    return path


def wide(rows: int = 2_000, seed: int = 5) -> list[dict[str, Any]]:
    """120 columns: six of them about a person, the rest answers and measurements."""
    draw = random.Random(seed)
    return [
        {
            "subject_id": f"S{number:06d}",
            "gender": draw.choice(["male", "female", "diverse"]),
            "year_of_birth": draw.randrange(1935, 2008),
            "state": draw.choice(["NW", "BY", "BW", "HE", "SN", "BE"]),
            "marital_status": draw.choice(["single", "married", "divorced", "widowed"]),
            "diagnosis_code": f"{draw.choice('ABCEFI')}{draw.randrange(10, 60)}.{draw.randrange(0, 5)}",
            **{f"q{question:03d}": draw.randrange(1, 6) for question in range(1, 81)},
            **{f"lab_{value:02d}": round(draw.gauss(100, 15), 3) for value in range(1, 35)},
        }
        for number in range(rows)
    ]


def baskets(rows: int = 1_500, seed: int = 7) -> list[dict[str, Any]]:
    """Lists of products beside a few columns."""
    draw = random.Random(seed)
    products = [f"product {number}" for number in range(60)]
    return [
        {
            "customer_id": number,
            "age": draw.randrange(18, 90),
            "postal_code": f"{draw.randrange(10, 40)}{draw.choice(['001', '123', '777'])}",
            "purchases": sorted(set(draw.choices(products, weights=range(60, 0, -1), k=draw.randrange(1, 7)))),
            "religion": draw.choice(["none", "catholic", "protestant", "muslim", "jewish"]),
        }
        for number in range(rows)
    ]


def records(rows: int = 800, seed: int = 11) -> list[dict[str, Any]]:
    """Patients with their visits, and the findings of each visit, nested."""
    draw = random.Random(seed)
    return [
        {
            "patient_id": f"P{number}",
            "region": draw.choice(["north", "south", "east", "west"]),
            "visits": [
                {
                    "month": draw.randrange(1, 13),
                    "ward": draw.choice(["surgery", "cardiology", "children", "eyes"]),
                    "findings": [{"code": draw.choice(["A1", "B2", "C3", "D4"]), "value": draw.randrange(0, 30)}
                                 for _ in range(draw.randrange(1, 3))],
                }
                for _ in range(draw.randrange(1, 4))
            ],
        }
        for number in range(rows)
    ]  # fmt: skip


def texts(rows: int = 2_000, seed: int = 13) -> list[dict[str, Any]]:
    """Everything is text, names of columns in French and Spanish."""
    draw = random.Random(seed)
    return [
        {
            "nom": f"{draw.choice(LAST)}",
            "prénom": draw.choice(FIRST),
            "date_de_naissance": (date(1940, 1, 1) + timedelta(days=draw.randrange(24_000))).isoformat(),
            "sexe": draw.choice(["H", "F"]),
            "code_postal": f"{draw.randrange(10, 20)}0{draw.randrange(10, 99)}",
            "ocupación": draw.choice(JOBS),
            "salario": str(draw.randrange(12, 90) * 500),
            "religión": draw.choice(["ninguna", "católica", "otra"]),
            "téléphone": f"+33 6 {draw.randrange(10, 99)} {draw.randrange(10, 99)} {draw.randrange(10**3, 10**4)}",
        }
        for _ in range(rows)
    ]


def dates(rows: int = 2_000, seed: int = 17) -> list[dict[str, Any]]:
    """Stays in a hospital: dates and times, persons with several rows."""
    draw = random.Random(seed)
    found = []
    for _ in range(rows):
        admitted = date(2024, 1, 1) + timedelta(days=draw.randrange(700))
        found.append({
            "patient_id": draw.randrange(rows // 3),
            "birth_date": date(1930, 1, 1) + timedelta(days=draw.randrange(28_000)),
            "admission": admitted,
            "discharge": admitted + timedelta(days=draw.randrange(1, 20)),
            "department": draw.choice(["surgery", "cardiology", "children"]),
            "icd": f"{draw.choice('CEIJ')}{draw.randrange(10, 30)}",
            "outcome": draw.choice(["home", "transfer", "death"]),
        })  # fmt: skip
    return found


def frame(spark: SparkSession, rows: list[dict[str, Any]], schema: str | None = None) -> DataFrame:
    """The rows as a table."""
    many: Any = rows
    return spark.createDataFrame(many, schema)
