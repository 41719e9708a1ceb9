import express from "express";
import { expressHost } from "./express-hosts.ts";
import { holdToLaws } from "./hosts.ts";

holdToLaws(expressHost("Express 5", express));
