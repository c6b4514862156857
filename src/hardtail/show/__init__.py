"""What people look at: tables, figures, the page, the theatre in a terminal. Reads records and traces only."""
