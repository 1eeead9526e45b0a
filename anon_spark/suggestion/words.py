"""Names of columns that say what a column is, in English, German, French and Spanish.

A word is matched against the parts of a name: `birthDate`, `birth_date` and `Birth date` have the parts birth and date. A word
that ends with * is the beginning of a part.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

IDENTIFIER = """
    name* nachname vorname surname firstname lastname fullname nom prenom nombre nombres apellido* nachnamen
    id ids uid uuid guid key mrn ssn nir dni nif nie nino svnr sozialversicherung* versichertennummer steuernummer
    email* mail e-mail courriel correo phone* telephone tel telefon* telefono mobile handy fax
    iban konto kontonummer account accountnumber compte cuenta card kreditkarte
    passport* passnummer ausweis* pasaporte passeport license licence fuehrerschein permis
    address adresse anschrift direccion street strasse rue calle hausnummer
    login user username userid benutzer nickname url website ip ipaddress mac imei device plate kennzeichen
    signature photo foto picture image
"""
QUASI = """
    age alter edad ages sex sexe sexo gender geschlecht genre genero
    birth* born dob geb* geburt* naissance nacimiento natal
    zip zipcode postal* postcode postleitzahl plz cp
    city town stadt ort wohnort ville ciudad municipality gemeinde commune municipio district bezirk quartier barrio
    county region regions state province provinz bundesland kanton canton departement provincia estado
    country countries nation* staat land pays pais citizen* staatsangehoerigkeit origin herkunft
    race ethnic* ethnie raza volksgruppe
    marital marriage married familienstand zivilstand civil matrimonial
    education* degree school schule schulabschluss bildung* abschluss diplom* etudes educacion estudios studies
    job jobs occupation profession* beruf* metier puesto ocupacion employer arbeitgeber employeur workclass industry branche
    department abteilung position rank grade_level
    language* sprache langue idioma lengua mother_tongue
    height groesse taille altura household haushalt children kinder enfants hijos dependents relationship
    admission* admit* discharge* aufnahme* entlassung* visit* date datum fecha year jahr annee anio month monat
    latitude longitude lat lon lng place location lieu lugar residence
    veteran military disability nationality
"""
SENSITIVE = """
    diagnos* disease* illness krank* maladie* enfermedad* icd* condition symptom* medication* medicine drug* medikament*
    medicament* treatment* therap* behandlung* traitement* tratamiento* procedure* surgery finding* befund* allerg*
    salary salaries income wage* gehalt lohn einkommen revenu* salaire* salario* ingreso* earnings pay debt* schulden credit*
    balance amount_owed wealth net_worth
    religion* confession konfession* faith politic* partei party vote voting union gewerkschaft
    orientation sexual* hiv test_result result ergebnis* resultat* resultado* score
    crime* criminal* offence offense verdict conviction outcome death cause pregnan* schwanger* blood blut* bmi genetic*
"""
FREE_TEXT = """
    comment* remark* note notes notiz* bemerkung* kommentar* text description* beschreibung freitext message observation*
"""
OTHERS = """
    country city town state region product drug file company firm department school hospital ward test disease diagnos*
    medication* item event place station job course class category type group brand model code language
"""
"""Words beside `name` or `id` that say: it is the name of something else than a person."""
PERSON = """
    person* patient* client* kunde* kunden* customer* member* mitglied* subject* employee* mitarbeiter* student* insured user*
"""


def parts(name: str) -> list[str]:
    """The parts of a name in lower case, without accents; neighbours also joined, as in e_mail and zip_code."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue"))
    ascii_name = "".join(character for character in plain if not unicodedata.combining(character))
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", ascii_name)
    single = [part for part in re.split(r"[^a-z]+", spaced.lower()) if part]
    joined = ["".join(single[at : at + 2]) for at in range(len(single) - 1)]
    return [*single, *joined]


def names(word_list: str, name: str) -> bool:
    """Whether one of the words is a part of the name."""
    return any(_matches(word, part) for part in parts(name) for word in word_list.split())


def names_other_thing(name: str) -> bool:
    """Whether a name such as country_name says what is named, and it is no person."""
    others = [part for part in parts(name) if part not in ("name", "names", "id", "key")]
    return _any(OTHERS.split(), others) or (_any(QUASI.split(), others) and not _any(PERSON.split(), others))


def names_a_person(name: str) -> bool:
    """Whether a name says that a column tells persons apart: person_id, patient, kundennummer."""
    return names(PERSON, name)


def _any(words: Iterable[str], found: Iterable[str]) -> bool:
    known = list(words)
    return any(_matches(word, part) for part in found for word in known)


def _matches(word: str, part: str) -> bool:
    return part.startswith(word[:-1]) if word.endswith("*") else part == word
